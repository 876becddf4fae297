"""Read the files of one log from where a reader begins, and then what is appended to them.

A file is known by its inode, so one that is renamed goes on, and the new file of its name is read from the start. One
that its writer copied to NAME.1 and then truncated is finished from that copy. One that vanishes is read to its end.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from protokube.local.logs.lines import Decoder, Entry, Whole, is_whole

BLOCK = 1 << 16
PACKED, COPIED = ".gz", ".1"
"""What was rotated into such a file was in another one before, which is read."""
LONGEST_FRAME = 80
"""Bytes of a line in which the framing of containerd ends."""
Identity = tuple[int, int]
Clock = Callable[[], float]


class OpenFile:
    """One open log file, and how far it was read."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self.file: BinaryIO = cast(BinaryIO, path.open("rb", buffering=0))
        status = os.fstat(self.file.fileno())
        self.identity: Identity = (status.st_dev, status.st_ino)
        self.position = 0
        self._whole, self._decoder = Whole(), Decoder(clock)

    def read(self, *, most: int | None = None) -> Iterator[Entry]:
        """The lines that ended since the last time; `most` is the size up to which the file is read."""
        if os.fstat(self.file.fileno()).st_size < self.position:
            yield from self._truncated()
        while most is None or self.position < most:
            self.file.seek(self.position)
            data = self.file.read(BLOCK if most is None else min(BLOCK, most - self.position))
            if not data:
                return
            self.position += len(data)
            yield from self._decoder.entries(self._whole.feed(data))

    def finish(self) -> Iterator[Entry]:
        """The rest, of a file to which nothing is written any more."""
        yield from self.read()
        yield from self._decoder.entries(self._whole.end())
        self.file.close()

    def _truncated(self) -> Iterator[Entry]:
        """What was written between our last look and the copy is in the copy."""
        with suppress(OSError), self.path.with_name(f"{self.path.name}.1").open("rb") as copy:
            copy.seek(self.position)
            while data := copy.read(BLOCK):
                yield from self._decoder.entries(self._whole.feed(data))
        yield from self._decoder.entries(self._whole.end())
        self.position = 0


class LogReader:
    """The files of one log, read as one."""

    def __init__(self, clock: Clock, since: float | None = None) -> None:
        """`since`: where `news` begins if there was no `history` before; else with the first line."""
        self._clock, self._since = clock, since
        self._open: dict[Identity, OpenFile] = {}
        self._rotated: set[Path] = set()
        """Files of the last look to which nothing is written any more."""
        self._began = False

    def history(self, files: Sequence[Path], *, tail: int | None = None, since: float | None = None) -> Iterator[Entry]:
        """What is in the files now, oldest first; at most the last `tail` lines, and none before `since`."""
        self._began = True
        for part in self._begin(files, tail, since):
            for entry in part:
                if since is None or entry.at is None or entry.at >= since:
                    yield entry

    def news(self, files: Sequence[Path]) -> Iterator[Entry]:
        """What was appended since; a file that is new is read from its start, one that is gone to its end."""
        if not self._began:
            yield from self.history(files, since=self._since)
            return
        there: set[Identity] = set()
        fresh: list[OpenFile] = []
        for path in files:
            with suppress(OSError):  # it vanished meanwhile
                status = path.stat()
                identity = (status.st_dev, status.st_ino)
                there.add(identity)
                if identity not in self._open and self._is_new(path):
                    fresh.append(OpenFile(path, self._clock))
        self._rotated = {path for path in files if not _is_live(path)}
        for identity in list(self._open):
            yield from self._open[identity].read() if identity in there else self._open.pop(identity).finish()
        for file in fresh:
            self._open[file.identity] = file
            yield from file.read()

    def _is_new(self, path: Path) -> bool:
        """Whether nothing of it was read under another name.

        Two rotations between two looks leave a file in the middle: the reader of our output may have paused us.
        """
        return _is_live(path) or (path not in self._rotated and path.suffix not in (PACKED, COPIED))

    def finish(self) -> Iterator[Entry]:
        """To the end of every file; for a host that is gone."""
        while self._open:
            yield from self._open.pop(next(iter(self._open))).finish()

    def close(self) -> None:
        for file in self._open.values():
            file.file.close()
        self._open.clear()

    def _begin(self, files: Sequence[Path], tail: int | None, since: float | None) -> list[Iterator[Entry]]:
        """The parts to read, oldest first; what is before the wanted lines is passed over."""
        parts: list[Iterator[Entry]] = []
        self._rotated = {path for path in files if not _is_live(path)}
        missing = tail
        for path in reversed(files):
            with suppress(OSError):
                old = since is not None and path.stat().st_mtime < since
                if not _is_live(path) and (old or missing == 0):
                    continue
                if path.suffix == PACKED:
                    parts.append(_unpacked(path, self._clock))
                    continue
                file = OpenFile(path, self._clock)
                size = os.fstat(file.file.fileno()).st_size
                if old or missing is not None:
                    file.position, found = last_lines(file.file, size, 0 if old or missing is None else missing)
                    missing = missing - found if missing is not None else None
                if _is_live(path):
                    self._open[file.identity] = file
                    parts.append(file.read(most=size))
                else:
                    parts.append(file.finish())
        return parts[::-1]


def _is_live(path: Path) -> bool:
    """Whether programs append to a file of this name: what has more after `.log` was rotated."""
    return path.suffix == ".log"


def _unpacked(path: Path, clock: Clock) -> Iterator[Entry]:
    whole, decoder = Whole(), Decoder(clock)
    with suppress(OSError, EOFError, zlib.error), gzip.open(path) as file:
        while data := file.read(BLOCK):
            yield from decoder.entries(whole.feed(data))
    yield from decoder.entries(whole.end())


def last_lines(file: BinaryIO, size: int, count: int) -> tuple[int, int]:
    """Where the last `count` whole lines begin, and how many were found; a line whose end is missing is not counted."""
    start, found = 0, 0
    ends = _line_ends(file, size)
    last = next(ends, None)
    if last is None:
        return 0, 0
    start = last + 1
    for begin in _begins(ends):
        file.seek(begin)
        if is_whole(file.read(LONGEST_FRAME).partition(b"\n")[0]):
            if found == count:
                break
            found += 1
        start = begin
    return start, found


def _begins(ends: Iterator[int]) -> Iterator[int]:
    """Where lines begin: after the end of the line before, the first one at 0."""
    for end in ends:
        yield end + 1
    yield 0


def _line_ends(file: BinaryIO, size: int) -> Iterator[int]:
    """The positions of line ends, last first."""
    position = size
    while position > 0:
        step = min(BLOCK, position)
        position -= step
        file.seek(position)
        data = file.read(step)
        at = data.rfind(b"\n")
        while at >= 0:
            yield position + at
            at = data.rfind(b"\n", 0, at)
