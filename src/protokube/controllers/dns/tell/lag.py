"""Measure the lag from a change in the cache to its records in DNS."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from protokube.controllers.dns.controller import Watches
from protokube.controllers.dns.read.watching import Seen


class Lag:
    """Wraps the watches: the round that follows a `look` handles every change noted before it."""

    def __init__(self, watching: Watches, clock: Callable[[], float] = time.monotonic) -> None:
        self._watching, self._clock = watching, clock
        self._lock = threading.Lock()
        self._heard: float | None = None
        self._dealt_with: float | None = None

    def heard(self) -> None:
        """Note a change; any thread may call this."""
        with self._lock:
            if self._heard is None:
                self._heard = self._clock()

    def look(self) -> Seen:
        with self._lock:
            self._dealt_with, self._heard = self._heard, None
        return self._watching.look()

    def relist(self) -> None:
        self._watching.relist()

    def seconds(self) -> float | None:
        """Seconds since the first change that this round handles; None if no change triggered it."""
        return None if self._dealt_with is None else self._clock() - self._dealt_with
