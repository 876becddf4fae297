"""When a value of ours may go: the hard part is not to delete.

A source that could not be read looks just like one that is empty. So a value that nobody asks for goes only after lists
that were complete, after some time, and never with many others at once: above the cap all of them stay, and a person
may force it. What an object replaces by something new is a change that it asked for itself: neither binds it.
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
    """What the caller knows about values that no list asks for."""

    allowed: bool
    """Every list behind the wants was complete."""
    why: str = ""
    """Why it is not allowed."""
    now: float
    grace: float
    """Seconds from the first plan that misses a value to the one that lets it go."""
    absent_since: Mapping[Owned, float] = field(default_factory=dict)
    """As the plan before this one returned it; empty after a restart, which only makes things stay longer."""
    kept: Mapping[Owned, str] = field(default_factory=dict)
    """Stays whatever the lists say, and why: its object was asked and still wants it."""
    exempt: Collection[Owned] = frozenset()
    """Known to be gone from something better than a list: bound by neither grace nor cap."""
    forced: bool = False
    """A person has seen the numbers: the cap does not bind. Everything else does."""

    def why_never(self, line: Owned) -> str:
        """Why not even a mark may go; nothing if it may."""
        if not self.allowed:
            return self.why or NOT_COMPLETE
        if line in self.kept:
            return self.kept[line] or "its object asks for it"
        return ""

    def since(self, line: Owned) -> float:
        """Since when it is missed; now, if that is new."""
        return min(self.absent_since.get(line, self.now), self.now)

    def grace_ends(self, line: Owned) -> float:
        """The moment from which it may go."""
        return self.now if line in self.exempt else self.since(line) + self.grace


Kind = Literal["right", "refused", "waits", "held"]
"""As it should be, by somebody else's hand; a person decides; comes by itself; the guard stands before it."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Left:
    """What is left as it is at a name though it is not as asked for, and why."""

    name: str
    kind: Kind
    why: str
    by: tuple[str, ...] = ()
    """The objects that are concerned."""

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


def why_too_many(going: int, owned: int) -> str:
    """Why none of them goes; nothing if they may."""
    cap = max(CAP_VALUES, int(CAP_SHARE * owned))
    return f"{going} of {owned} values would go at once, more than {cap}" if going > cap else ""
