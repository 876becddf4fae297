"""Poll `/readyz` of this machine's API server in a background thread; presence publishes the result with our lease."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Protocol

from protokube.errors import Refused, TryLater

EVERY, SOON = 1.0, 0.25
"""Seconds between two polls; while the server is not ready, and began or failed within the last QUICK seconds."""
QUICK = 60.0
FRESH, HANGS = 30.0, 60.0
"""Seconds for which an answer is fresh; after which a hanging request is reported."""
MISSES = 2
"""Consecutive failures after which the server counts as not ready: one slow answer is not enough."""


class ReadinessEndpoint(Protocol):
    def text(self, path: str) -> str:
        """The body of a successful answer; TryLater or Refused otherwise."""


class ApiWatch:
    """Polls the API server and keeps the last result."""

    def __init__(
        self, api: ReadinessEndpoint, changed: Callable[[], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._api, self._listeners = api, [changed]
        self._clock = clock
        self._ready, self._misses = False, 0
        self._looked, self._since = -math.inf, clock()

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call this, too, whenever the server becomes ready or stops being so."""
        self._listeners.append(listener)

    def ready(self) -> bool:
        """Whether the last answer is fresh and good."""
        return self._ready and self._clock() - self._looked < FRESH

    def look(self) -> None:
        try:
            self._api.text("/readyz")
        except (TryLater, Refused, OSError):  # OSError: our certificate is not there yet
            self._note(good=False)
        except Exception:
            self._note(good=False)  # an answer that cannot be parsed counts as not ready
            raise
        else:
            self._note(good=True)

    def _note(self, *, good: bool) -> None:
        self._misses = 0 if good else self._misses + 1
        now = good or (self._ready and self._misses < MISSES)
        self._looked = self._clock()
        if now != self._ready:
            self._ready, self._since = now, self._looked
            for each in self._listeners:
                each()

    def work(self) -> float:
        """One poll; returns the seconds until the next. Run by a thread of its own."""
        self.look()
        return SOON if not self._ready and self._clock() - self._since < QUICK else EVERY
