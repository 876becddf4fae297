"""Zones as values, and which of them a name lies in.

Two zones can have the same name: a public one that everybody sees, and a private one that hides it from the machines
inside. Of the zones that we manage, a name belongs to the one with the longest matching name; others do not count.
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
    """Distinguishes zones of the same name at a provider; the name itself where there can be only one."""
    private: bool = False
    """Visible only to the machines inside."""

    def __str__(self) -> str:
        return f"{self.name} ({'private, ' if self.private else ''}{self.id})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """The managed zones of one name: a public one, a private one, or both."""

    public: Zone | None = None
    private: Zone | None = None

    @property
    def zones(self) -> tuple[Zone, ...]:
        return tuple(zone for zone in (self.public, self.private) if zone is not None)


def horizon_of(name: str, managed: Mapping[str, Horizon]) -> Horizon | None:
    """The managed zones whose name is the longest suffix of this one; None if there are none."""
    ending = name
    while ending:
        if found := managed.get(ending):
            return found
        ending = ending.partition(".")[2]
    return None
