"""Wait for conditions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
SECONDS = 60


def wait_for(look: Callable[[], T | None], what: str, seconds: float = SECONDS) -> T:
    """What it sees, once it sees anything."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < deadline, f"{what} did not come within {seconds} s"
        time.sleep(0.02)
    return seen
