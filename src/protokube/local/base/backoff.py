"""How long to wait before something that ended is started again."""

from __future__ import annotations


def next_wait(last: float, lived: float, *, first: float, most: float, reset: float) -> float:
    """Seconds: `first`, doubled after each life up to `most`; a life of `reset` or longer starts over.

    `last` is the wait before the life that ended, 0 if there was none.
    """
    if not last or lived >= reset:
        return first
    return min(last * 2, most)
