"""A socket that a test leaves open fails that test, or the last test of its file.

Python warns of an open socket when it is collected: at any later time, in the middle of some other test, which then
fails for it. So what a test leaves behind is collected at its end. A socket that something still holds, such as a
thread that goes on, is not collected then: an audit hook knows all sockets, and none may outlive its file. Those that
were made before the first test, as modules were imported, stay.
"""

from __future__ import annotations

import errno
import gc
import itertools
import socket
import ssl
import sys
import threading
import time
import weakref
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

REPOSITORY = str(Path(__file__).parents[1] / "")
YOUNG, OLD = 1, 2
"""Generations of objects. Few are old when the test that made them ends; to search those, too, takes a second."""
PATIENCE = 10.0
"""Seconds for threads that end by themselves, as those of a server whose client has just gone."""
DEEPEST = 40
NOT_CONNECTED = (errno.ENOTCONN, errno.EINVAL)
"""As a socket that listens."""
Frame = tuple[CodeType, int]


@dataclass(frozen=True, slots=True)
class Made:
    """One socket, and who made it."""

    id: int
    """That of the socket; as garbage, it has no reference any more. A later one may have the same."""
    socket: weakref.ref[socket.socket]
    test: str
    thread: str
    stack: Sequence[Frame]

    def is_open(self) -> bool:
        found = self.socket()
        return found is not None and found.fileno() != -1

    def __str__(self) -> str:
        places = [(code.co_filename, line) for code, line in self.stack]
        ours = [each for each in places if each[0].startswith(REPOSITORY) and "/site-packages/" not in each[0]]
        told = " < ".join(f"{file.removeprefix(REPOSITORY).lstrip('/')}:{line}" for file, line in (ours or places)[:5])
        return f"{self.socket()!r} of {self.test}, in thread {self.thread}: {told}"


class Sockets:
    """The audit hook, which cannot be removed: every socket of this process, by a number that is used once."""

    def __init__(self) -> None:
        self.test = "no test"
        self._made: dict[int, Made] = {}
        self._numbers = itertools.count()

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "socket.__new__":
            return
        with suppress(TypeError):  # the class of the interpreter itself takes no weak references
            reference = weakref.ref(arguments[0])
            thread = threading.current_thread().name
            self._made[next(self._numbers)] = Made(id(arguments[0]), reference, self.test, thread, _stack())

    def open(self, file: str) -> list[Made]:
        """Those of the tests of a file."""
        found = self._made.copy()  # other threads add to it meanwhile
        for key, each in found.items():
            if not each.is_open():
                self._made.pop(key, None)
        return [each for each in found.values() if each.is_open() and each.test.startswith(file)]

    def maker(self, found: object) -> str:
        made = next((each for each in reversed(self._made.copy().values()) if each.id == id(found)), None)
        return f"; made by {made}" if made else ""


def _stack() -> Sequence[Frame]:
    frame: FrameType | None = sys._getframe(2)
    found: list[Frame] = []
    while frame is not None and len(found) < DEEPEST:
        found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return found


SOCKETS = Sockets()
sys.addaudithook(SOCKETS)


class ClosedIfUnmade(ssl.SSLSocket):
    """Over a connection that was reset before the handshake, Python 3.11.7 makes half a socket, and does not close it.

    It reads a byte to learn whether there is anything. https://github.com/python/cpython/issues/113280
    """

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        try:
            return super().recv(buflen, flags)
        except OSError as error:
            if self._sslobj is None and error.errno not in NOT_CONNECTED:  # type: ignore[attr-defined]
                self.close()
            raise


ssl.SSLContext.sslsocket_class = ClosedIfUnmade


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    SOCKETS.test = item.nodeid


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    yield
    found = warned(YOUNG)
    if nextitem is None or nextitem.path != item.path:
        found += outliving(item.nodeid.partition("::")[0] + "::")
    if found:
        pytest.fail("\n".join(("this test leaves behind:", *found)), pytrace=False)


def warned(generation: int) -> list[str]:
    """Collect garbage; what Python has to say about it."""
    found: list[str] = []

    def note(what: Any) -> None:  # keeps nothing of it: that would bring it back to life
        found.append(f"{what.exc_value!r}{SOCKETS.maker(what.object)}")

    before, sys.unraisablehook = sys.unraisablehook, note
    try:
        gc.collect(generation)
    finally:
        sys.unraisablehook = before
    return found


def outliving(file: str) -> list[str]:
    """Sockets of the tests of a file that are open after all its fixtures."""
    end = time.monotonic() + PATIENCE
    found = warned(OLD) if SOCKETS.open(file) else []
    while (left := SOCKETS.open(file)) and time.monotonic() < end:
        time.sleep(0.01)
    return [*found, *map(str, left)]
