"""Open exactly the device that was found, with exclusive access.

Since the device was found, its name may have been reassigned to another disk. So its number, size and serial are
compared again on the open handle. While the handle is open the kernel does not reuse the number, so the comparison
stays valid until it is closed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import time
from pathlib import Path
from typing import NamedTuple

from protokube.host.child import sysfs
from protokube.host.child.holders import users
from protokube.host.child.mountinfo import shown_anywhere, table
from protokube.host.child.reading import open_direct

GET_SIZE = 0x80081272  # BLKGETSIZE64
PATIENCE = 1.0
"""Seconds for a user of the device to go away: udev opens every new disk for a moment to probe it."""
PAUSE = 0.05


class Refusal(Exception):
    """The reason why the job must not continue."""


class Busy(Refusal):
    """The device is in use on this machine."""


class Wanted(NamedTuple):
    """The device as it was found."""

    path: str
    number: tuple[int, int]
    size: int
    serial: str | None


def claim(wanted: Wanted, flags: int) -> int:
    """An exclusive handle for direct reads. Raises Busy or Refusal, with the reason."""
    try:
        # Opening some devices has side effects, so the wrong one is not even opened.
        check_number(wanted, Path(wanted.path).lstat())
        handle = open_direct(wanted.path, flags | os.O_EXCL | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise Busy(in_use(wanted)) from error
        raise Refusal(f"{wanted.path} cannot be opened: {error.strerror}") from error
    try:
        check_number(wanted, os.fstat(handle))
        check_size(wanted, handle)
        check_serial(wanted)
        wait_for_users(wanted)
    except BaseException:
        os.close(handle)
        raise
    return handle


def check_number(wanted: Wanted, status: os.stat_result) -> None:
    if not stat.S_ISBLK(status.st_mode):
        raise Refusal(f"{wanted.path} is not a block device")
    number = (os.major(status.st_rdev), os.minor(status.st_rdev))
    if number != wanted.number:
        raise Refusal(f"{wanted.path} is another device now: {text(number)}, it was {text(wanted.number)}")


def check_size(wanted: Wanted, handle: int) -> None:
    (size,) = struct.unpack("Q", fcntl.ioctl(handle, GET_SIZE, b"\0" * 8))
    if size != wanted.size:
        raise Refusal(f"{wanted.path} has {size} bytes now, it had {wanted.size}")


def check_serial(wanted: Wanted) -> None:
    serial = sysfs.serial(wanted.number)
    if serial != wanted.serial:
        raise Refusal(f"{wanted.path} has the serial {serial} now, it had {wanted.serial}")


def wait_for_users(wanted: Wanted) -> None:
    until = time.monotonic() + PATIENCE
    while found := users(wanted.number):
        if time.monotonic() > until:
            raise Busy(f"{wanted.path} is in use: {'; '.join(found)}")
        time.sleep(PAUSE)


def in_use(wanted: Wanted) -> str:
    """What keeps us from claiming a device, as far as it can be determined."""
    points = [line.point for line in table() if line.number == wanted.number]
    if points:
        return f"{wanted.path} is mounted at {', '.join(points)}"
    if showing := shown_anywhere(wanted.number):
        return f"{wanted.path} is mounted in the mount namespace of process {showing[0]}"
    return f"{wanted.path} is in use: {'; '.join(users(wanted.number)) or 'the kernel does not say by whom'}"


def text(number: tuple[int, int]) -> str:
    return f"{number[0]}:{number[1]}"
