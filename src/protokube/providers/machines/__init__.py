"""Machines of one cluster, seen from one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine that exists at the provider."""

    id: str
    """Never used again for another machine."""
    name: str
    zone: str
    address: str
    """The address other machines of the cluster reach it at."""
    group: str
    """Its instance group."""
    master: bool = True
    external: str = ""
    """The address at which clients outside of the network reach it; empty if it has none of its own: then the internal
    one is used."""


class MachineProvider(Protocol):
    """This machine and all others of the cluster. TryLater when the provider does not answer."""

    def me(self) -> Machine:
        """This machine."""

    def list_machines(self) -> Sequence[Machine]:
        """Every machine of the cluster that is not gone, sorted by id; complete, or an error."""
