"""What an agent remembers between rounds: in-process caches, one typed class per step. All of it is safe to lose.

A restart of the agent loses it at any moment. So a step may keep here what saves a call (when a name was last read),
and counts that only ever delay (how often a volume was missing: if lost, the count restarts at zero). What proves that
something may be removed, formatted or started is observed in the same round, never looked up here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class StepCache:
    """The cache of one step, declared next to the code that reads it. Created empty on first use."""


C = TypeVar("C", bound=StepCache)


@dataclass(frozen=True, slots=True)
class Confirmed(Generic[T]):
    """A value that a remote side last confirmed, and when by the monotonic clock."""

    value: T
    when: float


def is_fresh(known: Confirmed[T] | None, value: T, now: float, lasts: float) -> bool:
    """Whether exactly this value was confirmed less than `lasts` seconds ago."""
    return known is not None and known.value == value and now - known.when < lasts


def is_recent(when: float | None, now: float, lasts: float) -> bool:
    """Whether that was less than `lasts` seconds ago; None means never."""
    return when is not None and now - when < lasts


def seconds_left(when: float | None, now: float, lasts: float) -> float:
    """Seconds for which that stays recent."""
    return 0.0 if when is None else max(when + lasts - now, 0.0)


@dataclass(frozen=True, slots=True)
class Missed:
    """In how many consecutive answers something was missing, and since when. If lost, the count restarts at zero."""

    times: int
    since: float


@dataclass(slots=True)
class Cache:
    """The caches of all steps of one agent."""

    since: dict[str, float] = field(default_factory=dict)
    """When each wait began."""
    _steps: dict[type[StepCache], StepCache] = field(default_factory=dict)

    def of(self, kind: type[C]) -> C:
        """The one cache of this class."""
        found = self._steps.get(kind)
        if found is None:
            found = self._steps[kind] = kind()
        assert isinstance(found, kind)
        return found

    def waited(self, what: str, now: float) -> float:
        return now - self.since.setdefault(what, now)
