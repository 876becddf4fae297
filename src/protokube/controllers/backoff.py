"""How long to wait before something is tried again, so that many who fail together do not return together."""

from __future__ import annotations

import random

FIRST, MOST = 0.05, 30.0
LASTING = 10.0
"""Seconds after which a success counts as one: what breaks right after it began has not helped."""


def ceiling(failures: int, *, first: float = FIRST, most: float = MOST) -> float:
    """`first`, doubled with each failure after the first one, up to `most`."""
    return min(most, first * 2.0 ** min(max(failures - 1, 0), 60))


class Backoff:
    """Waits of one thing that is tried again and again; anything between nothing and a ceiling that doubles."""

    def __init__(self, *, first: float = FIRST, most: float = MOST, lasting: float = LASTING) -> None:
        self._first, self._most, self._lasting = first, most, lasting
        self._failures = 0

    def wait(self, lived: float = 0.0) -> float:
        """Seconds, after something that went well for as long as `lived`."""
        self._failures = 1 if lived >= self._lasting else self._failures + 1
        return random.uniform(0, ceiling(self._failures, first=self._first, most=self._most))  # noqa: S311 no secret
