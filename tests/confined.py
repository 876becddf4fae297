"""Keep unit tests inside their process: no socket, no child program, no file outside of the repository and of /tmp.

An audit hook of Python sees every such call, also one in a thread or in a library, and refuses it. What was refused in
a thread, or swallowed by code that expects errors, is kept, and fails the test at its end.

Tests that need a real socket or a real program are those of the next tier, `tests/process`.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
TEMPORARY = (tempfile.gettempdir(), "/dev/shm")
READABLE = tuple({str(REPOSITORY), sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), "/usr/share/zoneinfo"})
"""Our own files, and those of Python and its libraries."""
GOLDEN = ("tests/golden",) if os.environ.get("PROTOKUBE_REFRESH_GOLDEN") else ()
"""`make golden` writes them anew."""
WRITABLE = tuple(str(REPOSITORY / name) for name in (".hypothesis", ".pytest_cache", *GOLDEN))
DEVICES = ("/dev/null", "/dev/full", "/dev/urandom", "/proc/self/")
"""The same on every machine, or about this process itself."""

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CALLS = {
    "socket.bind": 1, "socket.connect": 1, "socket.sendto": 1, "socket.getaddrinfo": 0, "socket.gethostbyname": 0,
    "subprocess.Popen": 0, "os.system": 0, "os.posix_spawn": 0, "os.exec": 0,
}  # fmt: skip
"""What always reaches out of the process, and which of its arguments says where to."""


class Reached(BaseException):
    """A unit test reached out of its process. Not an Exception: code under test must not take it for its own."""


class Confinement:
    """The audit hook. It cannot be removed, so it acts only while it is switched on."""

    def __init__(self) -> None:
        self.on = False
        self.reached: list[str] = []

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.on:
            return
        if event == "open":
            what = _outside(arguments)
        elif event in CALLS:
            what = f"{event} {arguments[CALLS[event]]!r}"
        else:
            return
        if what is not None:
            self.reached.append(what)
            raise Reached(what)


def _outside(arguments: tuple[object, ...]) -> str | None:
    """What is wrong with opening this file, if anything is."""
    file, _, flags = arguments
    if not isinstance(file, str | bytes):  # a descriptor, which was opened before
        return None
    path = os.path.abspath(os.fsdecode(file))  # noqa: PTH100 (each import comes by here)
    if path.startswith((*TEMPORARY, *DEVICES, *WRITABLE)):
        return None
    if isinstance(flags, int) and flags & WRITING:
        return None if "/__pycache__/" in path else f"writing {path}"
    return None if path.startswith(READABLE) else f"reading {path}"


CONFINEMENT = Confinement()
sys.addaudithook(CONFINEMENT)


@pytest.fixture(autouse=True)
def confined() -> Iterator[None]:
    """For every test of a tier that runs inside its process."""
    CONFINEMENT.reached.clear()
    CONFINEMENT.on = True
    yield
    CONFINEMENT.on = False
    assert not CONFINEMENT.reached, f"tests of this tier stay inside their process: {CONFINEMENT.reached}"
