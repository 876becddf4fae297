"""A single-threaded event loop: readable file descriptors, timers, signals.

asyncio would do, but its import alone takes longer than everything a host's init does before it serves, and three
hosts start at once. Callbacks must not block.
"""

from __future__ import annotations

import heapq
import selectors
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count

from protokube.signals import arrived, readable

Callback = Callable[[], None]


class Timer:
    """A scheduled callback that can be cancelled."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callback) -> None:
        self.callback: Callback | None = callback

    def cancel(self) -> None:
        self.callback = None


class Reactor:
    """The loop. `run` returns after `stop`."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = count()
        self._running = True

    def now(self) -> float:
        return time.monotonic()

    def watch(self, handle: int, callback: Callback) -> None:
        """Call back whenever a file descriptor is readable."""
        self._selector.register(handle, selectors.EVENT_READ, callback)

    def forget(self, handle: int) -> None:
        with suppress(KeyError):
            self._selector.unregister(handle)

    def after(self, seconds: float, callback: Callback) -> Timer:
        """Call back once, this many seconds from now."""
        timer = Timer(callback)
        heapq.heappush(self._timers, (self.now() + seconds, next(self._order), timer))
        return timer

    def every(self, seconds: float, callback: Callback) -> None:
        def again() -> None:
            self.after(seconds, again)
            callback()

        self.after(seconds, again)

    def on_signals(self, callbacks: Mapping[int, Callback]) -> None:
        """Call back on signals; main thread only. Pending signals of one kind are coalesced."""
        reader = readable(callbacks, blocking=False)

        def call_back() -> None:
            for number in arrived(reader):
                if number in callbacks:
                    callbacks[number]()

        self.watch(reader, call_back)

    def stop(self) -> None:
        self._running = False

    def run(self) -> None:
        while self._running:
            for key, _ in self._selector.select(self._timeout()):
                # An earlier callback of the same batch may have unregistered this one.
                if self._selector.get_map().get(key.fd) is key:
                    key.data()
            self._fire()

    def _timeout(self) -> float | None:
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        return max(0.0, self._timers[0][0] - self.now()) if self._timers else None

    def _fire(self) -> None:
        now = self.now()
        while self._timers and self._timers[0][0] <= now:
            callback = heapq.heappop(self._timers)[2].callback
            if callback is not None:
                callback()
