"""Do a small thing with files, and go on without it if the disk does not answer.

A read from a dead disk cannot be interrupted, so it is done in a thread that is left behind when it takes too long.
As long as one is left behind for something, the same thing is not tried again: a dead disk costs one thread, not one
a round.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from protokube.errors import TryLater

T = TypeVar("T")


class Attempt(threading.Thread, Generic[T]):
    """One action under way, and what came of it."""

    def __init__(self, action: Callable[[], T], what: str) -> None:
        super().__init__(name=what, daemon=True)
        self._action = action
        self._results: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._results.append(self._action())
        except BaseException as error:  # noqa: BLE001 (raised again where the caller is)
            self._error = error

    def outcome(self) -> T:
        if self._error is not None:
            raise self._error
        return self._results[0]


class Bounds:
    """What is under way or was left behind, by what it was."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[str, threading.Thread] = {}

    def __call__(self, action: Callable[[], T], seconds: float, what: str) -> T:
        """The action's result or its error; TryLater if it takes longer, or if an earlier one has not come back."""
        attempt = Attempt(action, what)
        with self._lock:
            earlier = self._under_way.get(what)
            if earlier is not None and earlier.is_alive():
                raise TryLater(f"{what} has not answered yet", hint="look at the disk's health with `dmesg`")
            self._under_way[what] = attempt
            attempt.start()
        attempt.join(seconds)
        if attempt.is_alive():
            raise TryLater(f"{what} took longer than {seconds:g} s", hint="look at the disk's health with `dmesg`")
        with self._lock:
            if self._under_way.get(what) is attempt:
                del self._under_way[what]
        return attempt.outcome()


bounded = Bounds()
