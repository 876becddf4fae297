"""When a value of ours may be removed: the hard part is not to delete.

A source that could not be read looks just like an empty one. So an unrequested value is removed only if the lists were
complete, after a grace time, and never with many others at once: above the cap all of them stay, and a user may force
the removal. A value that its own object replaces by a new one is bound by neither grace time nor cap.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from protokube.records.owners import Owned

CAP_SHARE, CAP_VALUES = 0.2, 10
NOT_COMPLETE = "the sources were not read completely"


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What the caller knows about unrequested values."""

    allowed: bool
    """Every list behind the wants was complete."""
    why: str = ""
    """Why removal is not allowed."""
    now: float
    grace: float
    """Seconds from the first plan in which no object asks for a value to the one that may remove it."""
    absent_since: Mapping[Owned, float] = field(default_factory=dict)
    """As returned by the previous plan; empty after a restart, which only keeps values longer."""
    kept: Mapping[Owned, str] = field(default_factory=dict)
    """Values that stay whatever the lists contain, with the reason: their object was read and still asks for them."""
    exempt: Collection[Owned] = frozenset()
    """Values known to be gone from a better source than a list: bound by neither grace time nor cap."""
    forced: bool = False
    """A user has seen the numbers: the cap does not apply. Everything else does."""

    def why_never(self, line: Owned) -> str:
        """Why not even the mark may be removed; empty if it may."""
        if not self.allowed:
            return self.why or NOT_COMPLETE
        if line in self.kept:
            return self.kept[line] or "its object asks for it"
        return ""

    def since(self, line: Owned) -> float:
        """Since when no object asks for the value; now, if this plan is the first."""
        return min(self.absent_since.get(line, self.now), self.now)

    def grace_ends(self, line: Owned) -> float:
        """The time from which the value may be removed."""
        return self.now if line in self.exempt else self.since(line) + self.grace


Kind = Literal["right", "refused", "waits", "held"]
"""right: another writer set it already; refused: a user must decide; waits: comes by itself; held: kept by a guard."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Left:
    """A difference from the request that the plan leaves as it is, and why."""

    name: str
    kind: Kind
    why: str
    by: tuple[str, ...] = ()
    """The objects concerned."""

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


def why_too_many(going: int, owned: int) -> str:
    """Why none of them may be removed; empty if they may."""
    cap = max(CAP_VALUES, int(CAP_SHARE * owned))
    return f"{going} of {owned} values would go at once, more than {cap}" if going > cap else ""
