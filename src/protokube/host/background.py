"""Slow work beside the rounds: one round starts it, a later one collects what came of it.

A flush on a dying disk can hang for ever. It then costs one sleeping thread: the same work is not started again before
it has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar, cast

from protokube.host.bounded import Attempt

T = TypeVar("T")


class Background(Protocol):
    """Work by name."""

    def run(self, name: str, work: Callable[[], T]) -> T | None:
        """Start the work, or collect its result: None while it runs. Raises what the work raised."""


class Threads:
    """Each work in a thread of its own. `on_done` is called from that thread when a result can be collected."""

    def __init__(self, on_done: Callable[[], None] = lambda: None) -> None:
        self._on_done = on_done
        self._under_way: dict[str, Attempt[object]] = {}

    def run(self, name: str, work: Callable[[], T]) -> T | None:
        known = self._under_way.get(name)
        if known is None:
            attempt: Attempt[object] = Attempt(work)
            threading.Thread(target=self._carry_out, args=(attempt,), name=name, daemon=True).start()
            self._under_way[name] = attempt  # only now: what could not be started is tried again
            return None
        if not known.ended:
            return None
        del self._under_way[name]
        return cast(T, known.outcome())

    def _carry_out(self, attempt: Attempt[object]) -> None:
        attempt.run()
        self._on_done()
