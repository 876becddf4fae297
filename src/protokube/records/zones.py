"""Zones as values, and which of them a name lies in.

One name can be that of two zones at once: a public one that everybody sees, and a private one that hides it from the
machines inside. A name belongs to the zone with the longest name that we manage, never to one that merely exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Zone:
    """One zone of a DNS provider."""

    name: str
    """Lower case, without the final dot."""
    id: str
    """What the provider tells two zones of one name apart by; the name itself where there is only one."""
    private: bool = False
    """Seen only by the machines inside."""

    def __str__(self) -> str:
        return f"{self.name} ({'private, ' if self.private else ''}{self.id})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """The zones of one name that are managed: a public one, a private one, or both."""

    public: Zone | None = None
    private: Zone | None = None

    @property
    def zones(self) -> tuple[Zone, ...]:
        return tuple(zone for zone in (self.public, self.private) if zone is not None)


def horizon_of(name: str, managed: Mapping[str, Horizon]) -> Horizon | None:
    """Where a name lies: the managed zones whose name is its longest ending; None if there are none."""
    ending = name
    while ending:
        if found := managed.get(ending):
            return found
        ending = ending.partition(".")[2]
    return None
