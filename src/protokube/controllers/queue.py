"""Deduplicating work queue, one worker per key.

`Pending` decides and is pure: callers pass the time. `Queue` adds threads and a clock. A key that is added while a
worker has it is processed once more afterwards: the worker may have read the state before the change.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from protokube.controllers.backoff import ceiling
from protokube.controllers.guard import guarded

MOST = 60.0

log = logging.getLogger(__name__)
Key = TypeVar("Key")


class Pending(Generic[Key]):
    """Which key is next, and when."""

    def __init__(self) -> None:
        self._ready: dict[Key, None] = {}  # in the order they came
        self._busy: set[Key] = set()
        self._again: set[Key] = set()
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []  # may hold outdated entries; `_due` has the valid times
        self._count = 0
        self._failures: dict[Key, int] = {}

    def add(self, key: Key) -> None:
        if key in self._busy:
            self._again.add(key)
        else:
            self._ready[key] = None

    def add_at(self, key: Key, due: float) -> None:
        """Add the key at a later time; of several requested times the earliest counts."""
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            self._count += 1
            heapq.heappush(self._heap, (due, self._count, key))

    def take(self, now: float) -> Key | None:
        """The next key to work on; no other worker gets it until `done`."""
        while (due := self.next_due()) is not None and due <= now:
            _, _, key = heapq.heappop(self._heap)
            del self._due[key]
            self.add(key)
        if not self._ready:
            return None
        key = next(iter(self._ready))
        del self._ready[key]
        self._busy.add(key)
        return key

    def done(self, key: Key, now: float, *, failed: bool, again: float | None = None) -> float | None:
        """Seconds until the key is due again, or None; failures back off exponentially."""
        self._busy.remove(key)
        self._failures[key] = self._failures.get(key, 0) + 1 if failed else 0
        if failed:
            again = ceiling(self._failures[key], most=MOST)
        else:
            del self._failures[key]
        if again is not None:
            self.add_at(key, now + again)
        if key in self._again:
            self._again.remove(key)
            self._ready[key] = None
        return again

    def next_due(self) -> float | None:
        """When the first of the delayed keys is due."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def is_ready(self) -> bool:
        return bool(self._ready)


class Queue(Generic[Key]):
    """The work queue for threads. Any number of threads may call `run`, and any thread may add keys."""

    def __init__(self, name: str, work: Callable[[Key], float | None]) -> None:
        """`work` returns the seconds after which to requeue the key; None: only when it is added again."""
        self._name, self._work = name, work
        self._pending: Pending[Key] = Pending()
        self._woken = threading.Condition()

    def add(self, key: Key) -> None:
        with self._woken:
            self._pending.add(key)
            self._woken.notify()

    def add_after(self, key: Key, seconds: float) -> None:
        with self._woken:
            self._pending.add_at(key, time.monotonic() + seconds)
            self._woken.notify()

    def wake(self) -> None:
        """Make the workers check their `stop` event."""
        with self._woken:
            self._woken.notify_all()

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set and `wake` was called."""
        while (key := self._next(stop)) is not None:
            self._do(key)

    def _next(self, stop: threading.Event) -> Key | None:
        with self._woken:
            while not stop.is_set():
                if (key := self._pending.take(time.monotonic())) is not None:
                    if self._pending.is_ready():  # keys may fall due together, and a notify wakes one thread only
                        self._woken.notify()
                    return key
                due = self._pending.next_due()
                self._woken.wait(None if due is None else max(0.0, due - time.monotonic()))
            return None

    def _do(self, key: Key) -> None:
        again: list[float | None] = [None]

        def work() -> None:
            again[0] = self._work(key)

        trouble = guarded(f"{self._name} {key}", work)
        with self._woken:
            wait = self._pending.done(key, time.monotonic(), failed=bool(trouble), again=again[0])
            self._woken.notify()
        if trouble:
            log.warning("%s %s: %s; again in %.2g s", self._name, key, trouble, wait or 0.0)
