"""A deadline for a whole call with all its steps."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    at: float
    """By `time.monotonic`."""

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    def left(self) -> float:
        """Remaining seconds, never 0, which a socket takes as "no blocking". TimeoutError when there are none."""
        seconds = self.at - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("out of time")
        return seconds

    def share(self, among: int) -> Deadline:
        """An earlier deadline: an equal part of what is left for each of several attempts."""
        return Deadline.after(self.left() / among)

    def join(self, threads: Iterable[threading.Thread]) -> None:
        """Wait for these threads, and no longer than this."""
        with suppress(TimeoutError):
            for each in threads:
                each.join(self.left())
