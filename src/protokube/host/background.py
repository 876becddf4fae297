"""Slow work beside the rounds: one round starts it, a later one collects what came of it.

A flush on a dying disk can hang for ever. It then costs one sleeping thread: the same work is not started again before
it has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar, cast

T = TypeVar("T")


class Background(Protocol):
    """Work by name."""

    def run(self, name: str, work: Callable[[], T]) -> T | None:
        """Start the work, or collect its result: None while it runs. Raises what the work raised."""


class Threads:
    """Each work in a thread of its own. `on_done` is called from that thread when a result can be collected."""

    def __init__(self, on_done: Callable[[], None] = lambda: None) -> None:
        self._on_done = on_done
        self._under_way: dict[str, _Work] = {}

    def run(self, name: str, work: Callable[[], T]) -> T | None:
        known = self._under_way.get(name)
        if known is None:
            self._under_way[name] = _Work(work, name, self._on_done)
            self._under_way[name].start()
            return None
        if not known.finished:
            return None
        del self._under_way[name]
        return cast(T, known.outcome())


class _Work(threading.Thread):
    def __init__(self, work: Callable[[], object], name: str, on_done: Callable[[], None]) -> None:
        super().__init__(name=name, daemon=True)
        self._work, self._on_done = work, on_done
        self._result: object = None
        self._error: BaseException | None = None
        self.finished = False
        """Before `on_done` is called, when the thread itself still lives."""

    def run(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001 (raised again where the result is collected)
            self._error = error
        self.finished = True
        self._on_done()

    def outcome(self) -> object:
        if self._error is not None:
            raise self._error
        return self._result
