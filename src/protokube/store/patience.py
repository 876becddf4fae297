"""Timeouts and retries of a store.

A request that fails fast is tried three times; one that times out is tried once, because it has used its time.
Only `Busy` is retried: it means that nothing was done, or that the request is idempotent.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from protokube.errors import TryLater

T = TypeVar("T")

SLOWEST = 100_000  # bytes per second; a slower connection counts as down


class Busy(TryLater):
    """The store failed fast, and a retry is safe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Timeouts in seconds, and the pauses between attempts."""

    connect: float = 10.0
    read: float = 10.0
    """Longest pause within a reply, and longest wait for a lock."""
    total: float = 300.0
    """Longest time for one reply, in case the server sends slowly."""
    pauses: tuple[float, ...] = (0.2, 0.6)

    def to_send(self, data: bytes) -> float:
        """Timeout of a write. `read` applies only after the last byte is sent, so the size sets the limit."""
        return self.connect + self.read + len(data) / SLOWEST

    def ask(self, question: Callable[[], T]) -> T:
        """The reply; after each Busy but the last, pause and retry."""
        for pause in self.pauses:
            try:
                return question()
            except Busy:
                time.sleep(pause)
        return question()


PATIENT = Patience()
