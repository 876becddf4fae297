"""This machine's mount table as values, cached so that every step of a round can read it cheaply."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from protokube.host import Mount
from protokube.host.child import mountinfo
from protokube.host.child.mountinfo import PROC, shown_anywhere

__all__ = ["MountTable", "mounts", "parse", "shown_anywhere"]

AGE = 0.05
"""Seconds after which the table is read again although nothing was mounted or unmounted."""


class MountTable:
    """The mount table of this process, read again only after a change.

    poll() on an open table reports each mount and unmount (proc(5)), but not a change of options: those are at most
    `AGE` old. Reading the table costs the kernel far more than poll(). Not thread-safe: it reads from one open file.
    """

    def __init__(self, *, proc: Path = PROC, clock: Callable[[], float] = time.monotonic) -> None:
        self._proc, self._clock = proc, clock
        self._file: int | None = None
        self._changes = select.poll()
        self._mounts: tuple[Mount, ...] = ()
        self._read_at = 0.0

    def mounts(self) -> tuple[Mount, ...]:
        """Every mount that this process sees now. Of two at one point, the later one hides the earlier."""
        now = self._clock()
        if self._file is None:
            self._file = mountinfo.open_table(self._proc)
            self._changes.register(self._file, select.POLLPRI | select.POLLERR)
        elif not self._changed() and 0 <= now - self._read_at < AGE:
            return self._mounts
        # poll before reading: a change meanwhile is reported by the next poll
        os.lseek(self._file, 0, os.SEEK_SET)
        self._mounts, self._read_at = parse(mountinfo.read_table(self._file)), now
        return self._mounts

    def _changed(self) -> bool:
        return bool(self._changes.poll(0))


def mounts(proc: Path = PROC) -> tuple[Mount, ...]:
    """The mount table, read once."""
    return parse(mountinfo.read(proc))


@lru_cache(maxsize=2)
def parse(text: str) -> tuple[Mount, ...]:
    """Cached by the text: it is read often and seldom changes."""
    return tuple(translated(line) for line in mountinfo.parse(text))


def translated(line: mountinfo.Line) -> Mount:
    return Mount(number=line.number, point=Path(line.point), type=line.type, options=line.options, id=line.id)
