"""Instance groups, for commands: the value and the Protocol.

The provider keeps each group at its size and replaces machines that died. Only what a template contains differs from
vendor to vendor, so it is opaque here: the vendor's launch data come in, and the same data are listed again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from protokube.errors import InvalidRequest

NAME = r"[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?"
"""Shorter than a host name may be: names of machines append a suffix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Machines of one kind, and how many of them there shall be."""

    name: str
    size: int
    template: Mapping[str, Any]
    """What each machine is started from, in the vendor's terms; JSON values only."""


class GroupProvider(Protocol):
    """The instance groups of one cluster. Each call can be repeated; TryLater when the provider does not answer."""

    def list_groups(self) -> Sequence[Group]:
        """Every group, as it was last ensured, sorted by name: the complete list or an error."""

    def ensure(self, group: Group) -> None:
        """Create the group, or change its size and template; does not wait for machines.

        A group that shrinks loses its youngest machines. Machines that run keep the template they were started from.
        InvalidRequest for a group that cannot be; nothing changes then.
        """

    def delete(self, name: str) -> None:
        """Delete the group and its machines; no effect if there is none.

        The volumes that the machines held stay, attached to no machine. TryLater until the machines are gone: none of
        them is replaced, and a repeated call completes the deletion.
        """


def check_name_and_size(name: object, size: object) -> None:
    """InvalidRequest unless a group can have this name and this size."""
    if not re.fullmatch(NAME, str(name)) or type(size) is not int or size < 0:
        raise InvalidRequest(f"{name!r} cannot be a group of {size!r}", want="a name of a-z, 0-9 and -; a number")
