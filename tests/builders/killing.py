"""Kill what runs in this process right before it changes the disk: an audit hook of Python sees each such call.

After a kill nothing more is written: `finally` runs in a test, and would not in a process that is gone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

CHANGES = ("os.rename", "os.remove", "os.symlink", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "os.chown")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Killed(BaseException):
    """As if by SIGKILL."""


class _Hook:
    """It cannot be removed, so it acts only while it is switched on."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.changes: list[str] = []

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.left is None:
            return
        writing = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING
        if event not in CHANGES and not writing:
            return
        if self.left <= 0:
            raise Killed
        self.left -= 1
        self.changes.append(event)


HOOK = _Hook()
sys.addaudithook(HOOK)


@contextmanager
def killed_before_change(number: int) -> Iterator[list[str]]:
    """Let so many changes of the disk happen, and none after them; the list fills with those that did."""
    HOOK.left, HOOK.changes = number, []
    try:
        yield HOOK.changes
    except Killed:
        pass
    finally:
        HOOK.left = None


class _Meddler:
    """Acts once, right before a file of this name is opened."""

    def __init__(self) -> None:
        self.name = ""
        self.act: Callable[[], object] = lambda: None

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and self.name and Path(str(arguments[0])).name == self.name:
            self.name = ""
            self.act()


MEDDLER = _Meddler()
sys.addaudithook(MEDDLER)


@contextmanager
def before_opening(name: str, act: Callable[[], object]) -> Iterator[None]:
    """Something else happens on the machine at that moment. Fails if nobody opens such a file."""
    MEDDLER.name, MEDDLER.act = name, act
    yield
    assert not MEDDLER.name, f"nobody opened {name}"
