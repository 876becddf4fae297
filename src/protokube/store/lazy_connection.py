"""A connection made on first use, shared by threads, and closed at most once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class LazyConnection(Generic[T]):
    """Makes its value on first use; after `drop`, makes a new one."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._value: T | None = None

    def get(self) -> T:
        with self._lock:
            if self._value is None:
                self._value = self._make()
            return self._value

    def drop(self) -> T | None:
        """Remove and return the value, for the caller to close; None if there is none."""
        with self._lock:
            value, self._value = self._value, None
            return value
