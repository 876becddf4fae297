"""Exponential back-off with full jitter, so that clients that fail together do not retry together."""

from __future__ import annotations

import random

FIRST, MOST = 0.05, 30.0
LASTING = 10.0
"""Seconds for which an attempt must last to reset the back-off; one that breaks earlier counts as a failure."""


def ceiling(failures: int, *, first: float = FIRST, most: float = MOST) -> float:
    """`first`, doubled with each failure after the first one, up to `most`."""
    return min(most, first * 2.0 ** min(max(failures - 1, 0), 60))


class Backoff:
    """The back-off of one operation: a random wait between zero and a ceiling that doubles."""

    def __init__(self, *, first: float = FIRST, most: float = MOST, lasting: float = LASTING) -> None:
        self._first, self._most, self._lasting = first, most, lasting
        self._failures = 0

    def wait(self, lived: float = 0.0) -> float:
        """Seconds until the next attempt; `lived` is how long the last one worked."""
        self._failures = 1 if lived >= self._lasting else self._failures + 1
        return random.uniform(0, ceiling(self._failures, first=self._first, most=self._most))  # noqa: S311 no secret
