"""The clocks of this machine."""

from __future__ import annotations

import time


class SystemClock:
    """Wall clock and monotonic clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()
