"""How long a store may take, and what is asked again.

What fails fast is asked three times; what hangs is asked once, because it has cost its time already.
Only `Busy` is repeated: it says that nothing was done, or that doing it twice is the same as once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from protokube.errors import TryLater

T = TypeVar("T")

SLOWEST = 100_000  # bytes per second; a line slower than that is as good as none


class Busy(TryLater):
    """The far side failed fast, and asking again does no harm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Time limits in seconds, and the pauses between tries."""

    connect: float = 10.0
    read: float = 10.0
    """Longest silence of the far side, and longest wait for a lock."""
    total: float = 300.0
    """Longest time for one answer, for a far side that drips."""
    pauses: tuple[float, ...] = (0.2, 0.6)

    def to_send(self, data: bytes) -> float:
        """Longest time for a write. Silence counts only after the last byte went out, so size sets the limit."""
        return self.connect + self.read + len(data) / SLOWEST

    def ask(self, question: Callable[[], T]) -> T:
        """The answer; after each Busy but the last, pause and ask again."""
        for pause in self.pauses:
            try:
                return question()
            except Busy:
                time.sleep(pause)
        return question()


PATIENT = Patience()
