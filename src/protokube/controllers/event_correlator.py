"""Deduplicate and rate-limit Events: news becomes an Event, a higher count of one, or nothing. Pure: callers pass time.

Events are for people. The same news within an hour is one Event with a count. A token bucket per object keeps an object
with constant news from filling etcd with Events.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal, TypeVar

TOGETHER = 3600.0
"""Seconds for which the same news counts up one Event; the API server itself expires Events after an hour."""
BURST, REFILL = 10, 60.0
"""Token bucket of one object: its size, and seconds until it gains one token."""
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
    """One CamelCase word, such as `RecordRefused`."""
    message: str


@dataclass(frozen=True, slots=True)
class WrittenEvent:
    """An Event that exists in the API."""

    name: str
    count: int
    first: float


class EventCorrelator:
    """Remembers recent Events and each object's token bucket, in bounded memory."""

    def __init__(self) -> None:
        self._written: OrderedDict[News, WrittenEvent] = OrderedDict()
        self._spent: OrderedDict[Regarding, tuple[float, float]] = OrderedDict()  # how many, as of when

    def allow(self, about: Regarding, now: float) -> bool:
        """Whether the object may have one more Event; if so, this takes the token."""
        spent, when = self._spent.pop(about, (0.0, now))
        spent = max(0.0, spent - (now - when) / REFILL)
        may = spent + 1 <= BURST
        _put(self._spent, about, (spent + may, now))
        return may

    def recent(self, news: News, now: float) -> WrittenEvent | None:
        """The Event with the same news, if it is young enough to count up."""
        written = self._written.get(news)
        return written if written is not None and now - written.first < TOGETHER else None

    def note(self, news: News, written: WrittenEvent) -> None:
        _put(self._written, news, written)

    def forget(self, news: News) -> None:
        self._written.pop(news, None)


def _put(kept: OrderedDict[K, V], key: K, value: V) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > REMEMBERED:
        kept.popitem(last=False)
