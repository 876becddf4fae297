"""Exponential back-off between restarts of a process."""

from __future__ import annotations


def next_wait(last: float, lived: float, *, first: float, most: float, reset: float) -> float:
    """Seconds to wait: `first`, doubled after each run up to `most`; a run of `reset` seconds or more starts over.

    `last` is the wait before the run that ended, 0 if it was the first.
    """
    if not last or lived >= reset:
        return first
    return min(last * 2, most)
