"""From the bytes of a log file to its lines: whole ones, in any encoding, and without the framing of containerd. Pure.

A line is given out once its end was read. containerd splits long lines into parts; they are put together again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from protokube.local.logs.stamps import stamp

LONGEST = 1 << 20
"""Bytes: a longer line is shown in pieces, so that a file without line ends is not kept in memory."""
FRAMED = re.compile(
    rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)) (stdout|stderr) ([PF])(?::\S*)? ?(.*)", re.DOTALL
)


class Entry(NamedTuple):
    """One line of a log."""

    at: float | None
    """Seconds since 1970; None if neither the line nor one before it has a time."""
    text: str


class Whole:
    """Cuts bytes into whole lines, however they arrive."""

    def __init__(self) -> None:
        self.rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        *lines, self.rest = (self.rest + data).split(b"\n")
        if len(self.rest) > LONGEST:
            lines, self.rest = [*lines, self.rest], b""
        return lines

    def end(self) -> list[bytes]:
        """What is left without a line end, once nothing follows."""
        rest, self.rest = self.rest, b""
        return [rest] if rest else []


class Decoder:
    """Gives each line of one file its text and its time: a line without a time has that of the line before.

    It asks the clock for each line: a file may be followed for days, and klog writes no year.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last: float | None = None
        self._parts: dict[bytes, list[bytes]] = {}

    def entries(self, lines: Iterable[bytes]) -> Iterator[Entry]:
        for line in lines:
            framed = FRAMED.match(line)
            if framed is None:
                yield self._entry(line, None)
                continue
            at, stream, tag, text = framed.groups()
            parts = self._parts.setdefault(stream, [])
            parts.append(text)
            if tag == b"F" or sum(map(len, parts)) > LONGEST:
                del self._parts[stream]
                yield self._entry(b"".join(parts), stamp(at.decode(), self._clock()))

    def _entry(self, line: bytes, at: float | None) -> Entry:
        text = line.removesuffix(b"\r").decode(errors="replace")
        at = stamp(text, self._clock()) if at is None else at
        if at is not None:
            self._last = at if self._last is None else max(at, self._last)
        return Entry(self._last, text)


def is_whole(line: bytes) -> bool:
    """Whether a raw line ends a line of the program: not so the first parts of a long one."""
    framed = FRAMED.match(line)
    return framed is None or framed[3] == b"F"
