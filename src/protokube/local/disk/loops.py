"""Loop devices, by ioctl: bind an image file to one, cut it off, release it.

Loop devices are shared by the whole machine: one that was listed a moment ago may belong to another user now. So each
is opened first, which keeps its binding, then checked to be bound to our file, and only then changed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from protokube.errors import TryLater

MAJOR = 7
SECTOR = 512
NOWHERE = 2**62
"""An offset beyond every image, and beyond the largest file of ext4 and most other file systems."""
ATTEMPTS = 50
"""Other processes look for a free device at the same time; each lost attempt means that another one got it."""

# linux/loop.h
SET_STATUS64, GET_STATUS64, CONFIGURE, CLEAR, GET_FREE = 0x4C04, 0x4C05, 0x4C0A, 0x4C01, 0x4C82
FLUSH_BUFFERS = 0x1261
INFO = struct.Struct("=5Q4I64s64s32s2Q")
OFFSET, SIZE_LIMIT = 3, 4
"""Indexes of these fields in INFO."""

SYSFS = Path("/sys/block")


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop device and the file it is bound to."""

    minor: int
    image: Path
    """As the kernel reports it; a deleted file keeps its name here."""
    offset: int

    @property
    def number(self) -> tuple[int, int]:
        return (MAJOR, self.minor)

    @property
    def path(self) -> Path:
        return Path(f"/dev/loop{self.minor}")

    @property
    def is_cut(self) -> bool:
        """Whether its window lies beyond the image: no sector is left to read or write."""
        return self.offset == NOWHERE


def bound(image: Path) -> Sequence[Loop]:
    """Every device bound to this image."""
    return [loop for loop in _all() if loop.image == image]


def bound_under(folder: Path) -> Sequence[Loop]:
    """Every device bound to a file in this folder."""
    return [loop for loop in _all() if loop.image.is_relative_to(folder)]


def bind(image: Path, size: int) -> int:
    """Bind the image to a device of this size; return its minor number."""
    info = INFO.pack(0, 0, 0, 0, size, 0, 0, 0, 0, image.stem.encode()[:63], b"", b"", 0, 0)
    with _opened_file(image) as file:
        for _ in range(ATTEMPTS):
            minor = _free()
            with suppress(FileNotFoundError), _opened(minor) as device:
                try:
                    fcntl.ioctl(device, CONFIGURE, struct.pack("=II", file, 0) + info + bytes(64))
                except OSError as error:
                    if error.errno != errno.EBUSY:
                        raise
                else:
                    return minor
    raise TryLater("no loop device is free", saw=f"{ATTEMPTS} that others took first", hint="losetup --list")


def cut(loop: Loop) -> None:
    """Let no later read or write of this device reach the image; what was written before is kept.

    The window moves beyond the end of the image, so the device has no sectors, and the block layer itself returns EIO.
    The kernel flushes its dirty buffers first. A request that passed the check of the block layer a moment before
    still arrives, in the new window: it must fail there, or a lost write would be acknowledged. Most file systems
    refuse a file of that length; for the others, freeze the file system on the disk first (`mounts.at_rest`). The
    device stays bound until its last user closes it, so its number is not reused before.
    """
    with _ours(loop) as device:
        if device is None:
            return
        os.fsync(device)
        info = list(INFO.unpack(_status(device)))
        info[OFFSET], info[SIZE_LIMIT] = NOWHERE, SECTOR
        _set_status(device, INFO.pack(*info))
        end = os.lseek(device, 0, os.SEEK_END)
        if end != 0:
            raise TryLater(f"{loop.path} could not be cut off from {loop.image}", saw=f"{end} bytes left", want="none")


def release(loop: Loop) -> None:
    """Unbind it now or, if it is in use, when its last user closes it."""
    with _ours(loop) as device:
        if device is not None:
            with suppress(OSError):  # ENXIO: it was unbound just now
                fcntl.ioctl(device, CLEAR)


def _all() -> Iterator[Loop]:
    for about in sorted(SYSFS.glob("loop*/loop")):
        with suppress(OSError):  # unbound meanwhile
            image = (about / "backing_file").read_text().rstrip("\n").removesuffix(" (deleted)")
            yield Loop(int(about.parent.name.removeprefix("loop")), Path(image), int((about / "offset").read_text()))


@contextmanager
def _ours(loop: Loop) -> Iterator[int | None]:
    """The open device, or None if it is no longer bound to this image."""
    with _opened(loop.minor) as device:
        found = next((now for now in _all() if now.minor == loop.minor), None)
        yield device if found is not None and found.image == loop.image else None


def _status(device: int) -> bytes:
    info = bytearray(INFO.size)
    fcntl.ioctl(device, GET_STATUS64, info)
    return bytes(info)


def _set_status(device: int, info: bytes) -> None:
    for _ in range(ATTEMPTS):
        try:
            fcntl.ioctl(device, SET_STATUS64, info)
        except BlockingIOError:  # older kernels: a page was dirtied between flush and change
            fcntl.ioctl(device, FLUSH_BUFFERS)
        else:
            return


def _free() -> int:
    control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    try:
        return fcntl.ioctl(control, GET_FREE)
    finally:
        os.close(control)


@contextmanager
def _opened(minor: int) -> Iterator[int]:
    device = os.open(f"/dev/loop{minor}", os.O_RDWR | os.O_CLOEXEC)
    try:
        yield device
    finally:
        os.close(device)


@contextmanager
def _opened_file(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        yield file
    finally:
        os.close(file)
