"""Read a device with O_DIRECT, completely or in many samples, and accept no short reads.

The page cache may hold data from before the path to the disk broke, so reads bypass it; if a device does not support
O_DIRECT, its cached pages are dropped first. Errors and short reads are `Unreadable`: the content is unknown.
"""

from __future__ import annotations

import errno
import mmap
import os

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

SMALL = 64 * MIB
"""A device up to this size is read completely."""
HEAD = TAIL = 4 * MIB
MIDDLE = MIB
SAMPLES = 64
SAMPLE = 64 * KIB
GROUP = 128 * MIB
"""ext4 keeps backup superblocks at the start of these groups, so a wiped head does not hide it."""
GROUPS = (1, 3, 5, 7, 9, 25, 27, 49)
MIRRORS = (64 * MIB, 256 * GIB)
"""Where btrfs keeps copies of its superblock."""

ALIGNMENT = 4096
"""The largest logical block there is; direct reads start on one."""
CHUNK = MIB
ZEROS = bytes(CHUNK)


class Unreadable(Exception):
    """The device could not be read completely."""


def spans(size: int) -> list[tuple[int, int]]:
    """The parts of a device to read: (start, length) in order, aligned and within it."""
    if size <= SMALL:
        return [(0, size)] if size else []
    tail = aligned(size - TAIL)
    wanted = {0: HEAD, tail: size - tail, aligned(size // 2 - MIDDLE // 2): MIDDLE}
    places = [HEAD + (tail - HEAD) * (2 * sample + 1) // (2 * SAMPLES) for sample in range(SAMPLES)]
    places += [GROUP * group for group in GROUPS] + list(MIRRORS) + [size // 4, size // 4 * 3]
    for place in places:
        if HEAD <= place < tail - SAMPLE:
            wanted.setdefault(aligned(place), SAMPLE)
    return sorted(wanted.items())


def aligned(position: int) -> int:
    return position - position % ALIGNMENT


def open_direct(path: str, flags: int) -> int:
    """Open with O_DIRECT; if that is not supported, open without and drop the cached pages."""
    try:
        return os.open(path, flags | os.O_CLOEXEC | os.O_DIRECT)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    handle = os.open(path, flags | os.O_CLOEXEC)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    return handle


def read(handle: int, start: int, length: int) -> bytes:
    """Exactly these bytes, or Unreadable."""
    with mmap.mmap(-1, length) as buffer, memoryview(buffer) as view:
        try:
            got = os.preadv(handle, [view], start)
        except OSError as error:
            raise Unreadable(f"read error in the {length} bytes at byte {start}: {error.strerror}") from error
        if got != length:
            raise Unreadable(f"short read at byte {start}: {got} of {length} bytes")
        return view.tobytes()


def first_not_zero(handle: int, size: int) -> int | None:
    """Read every span completely; return the position of the first byte that is not zero."""
    found: int | None = None
    for start, length in spans(size):
        for position in range(start, start + length, CHUNK):
            data = read(handle, position, min(CHUNK, start + length - position))
            if found is None and data != ZEROS[: len(data)]:
                found = position + len(data) - len(data.lstrip(b"\0"))
    return found
