"""Whether the API server of this machine is ready; asked beside the rounds, and told to the others with our lease."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Protocol

from protokube.errors import Refused, TryLater

EVERY = 1.0
FRESH, HANGS = 30.0, 60.0
"""Seconds for which an answer counts; after which a look that has not ended is reported."""
MISSES = 2
"""So many bad answers running before it counts as gone: one slow answer is not the end of a server."""


class ReadinessEndpoint(Protocol):
    def text(self, path: str) -> str:
        """What it answers; TryLater or Refused otherwise."""


class ApiWatch:
    """Asks, and remembers the answer."""

    def __init__(
        self, api: ReadinessEndpoint, changed: Callable[[], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._api, self._changed = api, changed
        self._clock = clock
        self._ready, self._misses = False, 0
        self._looked = -math.inf

    def ready(self) -> bool:
        """Whether it was a moment ago; an old answer says nothing."""
        return self._ready and self._clock() - self._looked < FRESH

    def look(self) -> None:
        try:
            self._api.text("/readyz")
        except (TryLater, Refused, OSError):  # OSError: our certificate is not there yet
            self._note(good=False)
        except Exception:
            self._note(good=False)  # what it answers cannot be read, so it does not serve
            raise
        else:
            self._note(good=True)

    def _note(self, *, good: bool) -> None:
        self._misses = 0 if good else self._misses + 1
        now = good or (self._ready and self._misses < MISSES)
        self._looked = self._clock()
        if now != self._ready:
            self._ready = now
            self._changed()

    def work(self) -> float:
        """One look; the seconds until the next: for a thread of its own."""
        self.look()
        return EVERY
