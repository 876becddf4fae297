"""A terminal inside a host, connected to the user's: of the host's own devices, so that job control works in it.

The user's terminal itself stays outside: a process of the host could else write into its input. Whatever happens, its
settings are restored.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import struct
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

TIOCSPTLCK, TIOCGPTPEER = 0x40045431, 0x5441
"""asm-generic/ioctls.h: unlock a new terminal, and open its other side without a path."""
BLOCK = 1 << 16
SECONDS_TO_DRAIN = 0.2
"""What the last program wrote is there already; others that it left behind may hold the terminal for ever."""


def open_pair(multiplexer: str) -> tuple[int, int]:
    """A new terminal: the side that we relay, and the side of the programs."""
    ours = os.open(multiplexer, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(ours, TIOCSPTLCK, struct.pack("i", 0))
        theirs = fcntl.ioctl(ours, TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        os.close(ours)
        raise
    return ours, theirs


def take(terminal: int) -> None:
    """Make it the controlling terminal of the calling process, in a session of its own."""
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def relay(ours: int, ended: int, source: int = 0, target: int = 1) -> None:
    """Copy both directions until the process of the pidfd `ended` is gone."""
    os.set_blocking(ours, False)
    with _as_raw(source), _resized(ours, source):
        waiting, reading = b"", True
        while True:
            watched = [ours, ended, *([source] if reading and not waiting else [])]
            readable, writable, _ = select.select(watched, [ours] if waiting else [], [])
            if source in readable:
                waiting = _read(source)
                reading = bool(waiting)
            if writable:
                with suppress(BlockingIOError):
                    waiting = waiting[os.write(ours, waiting) :]
            if ours in readable and not _copy(ours, target):
                break
            if ended in readable:
                break
        while select.select([ours], [], [], SECONDS_TO_DRAIN)[0] and _copy(ours, target):
            pass


def _copy(source: int, target: int) -> bool:
    data = _read(source)
    while data:
        data = data[os.write(target, data) :]
        if not data:
            return True
    return False


def _read(source: int) -> bytes:
    """Empty at the end: a terminal that all programs have closed reports an input/output error."""
    try:
        return os.read(source, BLOCK)
    except OSError as why:
        if why.errno != errno.EIO:
            raise
        return b""


@contextmanager
def _as_raw(terminal: int) -> Iterator[None]:
    before = termios.tcgetattr(terminal)
    try:
        tty.setraw(terminal, termios.TCSADRAIN)
        yield
    finally:
        with suppress(termios.error):  # the terminal itself is gone: its window was closed
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextmanager
def _resized(ours: int, source: int) -> Iterator[None]:
    """Give it the size of the user's, now and whenever that changes."""

    def copy(_number: int = 0, _frame: FrameType | None = None) -> None:
        with suppress(OSError):
            size = fcntl.ioctl(source, termios.TIOCGWINSZ, bytes(8))
            fcntl.ioctl(ours, termios.TIOCSWINSZ, size)

    before = signal.signal(signal.SIGWINCH, copy)
    try:
        copy()
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
