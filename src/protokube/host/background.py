"""Slow work in the background: one round starts it, a later round collects its result.

A flush on a failing disk can hang for ever. That costs one sleeping thread: the same work is not started again before
it has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar, cast

from protokube.host.bounded import Attempt

T = TypeVar("T")


class Background(Protocol):
    """Runs named work in the background."""

    def run(self, name: str, work: Callable[[], T]) -> T | None:
        """Start the work, or collect its result: None while it runs. Raises what the work raised."""


class Threads:
    """Runs each work in its own thread. `on_done` is called from that thread when a result can be collected."""

    def __init__(self, on_done: Callable[[], None] = lambda: None) -> None:
        self._on_done = on_done
        self._under_way: dict[str, Attempt[object]] = {}

    def run(self, name: str, work: Callable[[], T]) -> T | None:
        known = self._under_way.get(name)
        if known is None:
            attempt: Attempt[object] = Attempt(work)
            threading.Thread(target=self._carry_out, args=(attempt,), name=name, daemon=True).start()
            self._under_way[name] = attempt  # only now: if the thread cannot be started, the next call retries
            return None
        if not known.ended:
            return None
        del self._under_way[name]
        return cast(T, known.outcome())

    def _carry_out(self, attempt: Attempt[object]) -> None:
        attempt.run()
        self._on_done()
