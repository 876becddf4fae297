"""What of the news about objects becomes an Event, a higher count of one, or nothing. Pure; times are told.

Events are for people. The same news within an hour is one Event with a count, and an object that has news all the time
does not fill the cluster's database with them.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal, TypeVar

TOGETHER = 3600.0
"""Seconds for which the same news is the same Event; the API server itself forgets Events after an hour."""
BURST, REFILL = 10, 60.0
"""Events that one object may have at once, and seconds until it may have one more."""
REMEMBERED = 4096

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Regarding:
    """The object that news is about."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    api_version: str = "v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """Something that the owner of an object should know."""

    about: Regarding
    type: Literal["Normal", "Warning"]
    reason: str
    """One word in capitals and small letters, such as `RecordRefused`."""
    message: str


@dataclass(frozen=True, slots=True)
class Told:
    """An Event that there is."""

    name: str
    count: int
    first: float


class Memory:
    """What was told already: no more of it than fits."""

    def __init__(self) -> None:
        self._told: OrderedDict[News, Told] = OrderedDict()
        self._spent: OrderedDict[Regarding, tuple[float, float]] = OrderedDict()  # how many, as of when

    def may_tell(self, about: Regarding, now: float) -> bool:
        """Whether the object has an Event left; it is spent."""
        spent, when = self._spent.pop(about, (0.0, now))
        spent = max(0.0, spent - (now - when) / REFILL)
        may = spent + 1 <= BURST
        _put(self._spent, about, (spent + may, now))
        return may

    def already(self, news: News, now: float) -> Told | None:
        """The Event of the same news, if it is young enough to count up."""
        told = self._told.get(news)
        return told if told is not None and now - told.first < TOGETHER else None

    def note(self, news: News, told: Told) -> None:
        _put(self._told, news, told)

    def forget(self, news: News) -> None:
        self._told.pop(news, None)


def _put(kept: OrderedDict[K, V], key: K, value: V) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > REMEMBERED:
        kept.popitem(last=False)
