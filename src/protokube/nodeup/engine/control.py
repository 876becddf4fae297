"""How a run hears of what happens: ends of attempts, and a wish to stop, in one queue.

A signal handler may interrupt the main thread anywhere, also while it holds a lock. So a handler only puts something
into a queue that is made for it (SimpleQueue), and the main thread, which waits there, does the rest.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Generic, TypeVar

T = TypeVar("T")


class Control(Generic[T]):
    """The queue of one run, and whether it is to stop."""

    def __init__(self) -> None:
        self._events: SimpleQueue[T | None] = SimpleQueue()
        self.stopping = threading.Event()
        """Set once stopping was asked for: work of other threads ends as soon as it may."""
        self.asked = 0
        """How often stopping was asked for."""

    def stop(self) -> None:
        """Ask to stop; may be called by a signal handler."""
        self._events.put(None)

    def tell(self, event: T) -> None:
        self._events.put(event)

    def next(self, seconds: float | None = None) -> T | None:
        """The next event; None if stopping was asked for, or if the time is over."""
        try:
            event = self._events.get(timeout=None if seconds is None else max(seconds, 0.0))
        except Empty:
            return None
        if event is None:
            self.asked += 1
            self.stopping.set()
        return event

    def stop_asked(self) -> bool:
        """Whether to stop; for a time in which no other events come."""
        if not self.stopping.is_set():
            self.next(0.0)
        return self.stopping.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait between two runs; whether stopping was asked for."""
        deadline = time.monotonic() + seconds
        while not self.stopping.is_set() and (left := deadline - time.monotonic()) > 0:
            self.next(left)
        return self.stopping.is_set()

    @contextmanager
    def stopped_by_signals(self) -> Iterator[None]:
        """Ctrl-C, SIGTERM and a closed terminal ask to stop; for the main thread."""
        former = {}

        def handle(_number: int, _frame: FrameType | None) -> None:
            self.stop()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # who ignores one of them, as nohup does, means it
                former[number] = signal.signal(number, handle)
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)
