"""Run a short file operation with a timeout, and continue without it if the disk does not respond.

A read from a dead disk cannot be interrupted, so it runs in a thread that is abandoned after the timeout. While a
thread is stuck in an operation, the same operation is not tried again: a dead disk costs one thread, not one per round.
Threads that finish in time are reused: an agent reads a few files in every round, for years.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

from protokube.errors import TryLater

T = TypeVar("T")


class Attempt(Generic[T]):
    """One action and its result or error."""

    def __init__(self, action: Callable[[], T]) -> None:
        self._action = action
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._running = threading.Lock()
        self._running.acquire()

    def run(self) -> None:
        try:
            self._results.append(self._action())
        except BaseException as error:  # noqa: BLE001 (raised again in the caller's thread)
            self._error = error
        self._running.release()

    def wait(self, seconds: float) -> bool:
        """Wait for the end; whether it ended in time. For one caller."""
        return self._running.acquire(timeout=seconds)

    @property
    def ended(self) -> bool:
        return self._error is not None or bool(self._results)

    def outcome(self) -> T:
        if self._error is not None:
            raise self._error
        return self._results[0]


class Worker(threading.Thread):
    """A thread that runs one attempt after the other, until it gets None."""

    def __init__(self) -> None:
        super().__init__(name="bounded", daemon=True)
        self.attempts: SimpleQueue[Attempt[object] | None] = SimpleQueue()

    def run(self) -> None:
        while (attempt := self.attempts.get()) is not None:
            attempt.run()
            del attempt  # keep no reference to it while waiting for the next one


class Bounds:
    """Running and stuck attempts by operation, and idle threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[str, Attempt[object]] = {}
        self._idle: list[Worker] = []

    def __call__(self, action: Callable[[], T], seconds: float, what: str) -> T:
        """The action's result or its error; TryLater on a timeout, or while an earlier attempt is still stuck."""
        attempt: Attempt[object] = Attempt(action)
        with self._lock:
            earlier = self._under_way.get(what)
            if earlier is not None and not earlier.ended:
                raise TryLater(f"{what} has not answered yet", hint="look at the disk's health with `dmesg`")
            worker = self._idle.pop() if self._idle else _started()
            self._under_way[what] = attempt
        worker.attempts.put(attempt)
        if not attempt.wait(seconds):
            worker.attempts.put(None)  # abandoned: the thread ends after this attempt
            raise TryLater(f"{what} took longer than {seconds:g} s", hint="look at the disk's health with `dmesg`")
        with self._lock:
            self._idle.append(worker)
            if self._under_way.get(what) is attempt:
                del self._under_way[what]
        return attempt.outcome()  # type: ignore[return-value]  # it is this action's


def _started() -> Worker:
    worker = Worker()
    worker.start()
    return worker


bounded = Bounds()
