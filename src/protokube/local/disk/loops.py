"""Loop devices, by the kernel's own calls: bind an image file to one, cut it off, let it go.

Devices are shared with everybody on this machine: one that was listed a moment ago may be somebody else's now. So each
is opened first, which keeps it bound to what it is bound to, then proven to be ours, and only then changed.
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
"""An offset that no image reaches, and at which ext4 and most others take no byte."""
ATTEMPTS = 50
"""Others look for a free device at the same time; each loss means that one of them won."""

# linux/loop.h
SET_STATUS64, GET_STATUS64, CONFIGURE, CLEAR, GET_FREE = 0x4C04, 0x4C05, 0x4C0A, 0x4C01, 0x4C82
FLUSH_BUFFERS = 0x1261
INFO = struct.Struct("=5Q4I64s64s32s2Q")
OFFSET, SIZE_LIMIT = 3, 4
"""Where these stand in INFO."""

SYSFS = Path("/sys/block")


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop device that is bound to a file of ours."""

    minor: int
    image: Path
    """As the kernel reports it; a file that was deleted keeps its name here."""
    offset: int

    @property
    def number(self) -> tuple[int, int]:
        return (MAJOR, self.minor)

    @property
    def path(self) -> Path:
        return Path(f"/dev/loop{self.minor}")

    @property
    def is_cut(self) -> bool:
        """Its window lies nowhere: it has no sector left to read or write."""
        return self.offset == NOWHERE


def bound(image: Path) -> Sequence[Loop]:
    """Every device that shows this image."""
    return [loop for loop in _all() if loop.image == image]


def bound_under(folder: Path) -> Sequence[Loop]:
    """Every device that shows a file in this folder."""
    return [loop for loop in _all() if loop.image.is_relative_to(folder)]


def bind(image: Path, size: int) -> int:
    """Show the image as a device of this size; returns its minor number."""
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

    The window is moved to where the image has no end, so the device has no sectors at all, and the block layer itself
    answers EIO. The kernel writes its own dirty buffers out first. A request that had passed the block layer's check a
    moment before arrives in the new window all the same: it must fail there, or a write would be acknowledged that is
    nowhere. Most file systems refuse a file of that length; for the others, bring the disk's own file system to rest
    first (`mounts.at_rest`). Everything stays bound until the last user closes it, so the number is nobody else's.
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
    """Unbind it now, or, if it is in use, as soon as the last user closes it."""
    with _ours(loop) as device:
        if device is not None:
            with suppress(OSError):  # ENXIO: it was unbound in this very moment
                fcntl.ioctl(device, CLEAR)


def _all() -> Iterator[Loop]:
    for about in sorted(SYSFS.glob("loop*/loop")):
        with suppress(OSError):  # unbound meanwhile
            image = (about / "backing_file").read_text().rstrip("\n").removesuffix(" (deleted)")
            yield Loop(int(about.parent.name.removeprefix("loop")), Path(image), int((about / "offset").read_text()))


@contextmanager
def _ours(loop: Loop) -> Iterator[int | None]:
    """The open device, or nothing if it is no longer bound to this image."""
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
        except BlockingIOError:  # older kernels: somebody dirtied a page between the write-out and the change
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
