"""Whether the API server of this machine is ready; asked beside the rounds, and told to the others with our lease."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from protokube.errors import Refused, TryLater

EVERY = 1.0
MISSES = 2
"""So many bad answers running before it counts as gone: one slow answer is not the end of a server."""


class Asked(Protocol):
    def text(self, path: str) -> str:
        """What it answers; TryLater or Refused otherwise."""


class ApiWatch:
    """Asks, and remembers the answer."""

    def __init__(self, api: Asked, changed: Callable[[], None]) -> None:
        self._api, self._changed = api, changed
        self._ready, self._misses = False, 0
        self._stop = threading.Event()

    def ready(self) -> bool:
        return self._ready

    def look(self) -> None:
        try:
            self._api.text("/readyz")
        except (TryLater, Refused, OSError):  # OSError: our certificate is not there yet
            self._misses += 1
            now = self._ready and self._misses < MISSES
        else:
            self._misses, now = 0, True
        if now != self._ready:
            self._ready = now
            self._changed()

    def run(self) -> None:
        """Look until stopped: for a thread of its own."""
        while not self._stop.wait(EVERY):
            self.look()

    def stop(self) -> None:
        self._stop.set()
