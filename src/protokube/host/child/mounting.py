"""Check and mount an ext4; unmount it and make sure that it is gone from every mount namespace.

A mount is copied into every mount namespace made after it, and persists there after our unmount. So a successful umount
is not enough: the device must be in no process's mount table, and an exclusive open must succeed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import time
from pathlib import Path

from protokube.host.child import proof, tools
from protokube.host.child.claim import PAUSE, Refusal, Wanted, claim, text
from protokube.host.child.holders import users
from protokube.host.child.mountinfo import Line, shown_anywhere, table

NO_SETUID, NO_DEVICES, NO_ACCESS_TIMES = 2, 4, 1024
FLAGS = ctypes.c_ulong(NO_SETUID | NO_DEVICES | NO_ACCESS_TIMES)
DO_NOT_FOLLOW = 8
DATA = b"errors=remount-ro,data_err=abort"
"""Stop writing after an error, also one of file data: otherwise etcd would go on with data that is only in memory."""
CLEAN, MENDED, OPERATIONAL = 0, 1, 8
LINGERING = 1.0
"""Seconds until the mount namespace of a process that has just exited is released."""


class Damaged(Refusal):
    """e2fsck found errors that it does not repair automatically."""


def mount(wanted: Wanted, point: Path, parent: int) -> None:
    """Mount the device at the point, unless it is mounted there already."""
    if is_mounted_at(table(), wanted, point):
        return
    exclusive = claim(wanted, os.O_RDONLY)
    pin = os.open(f"/proc/self/fd/{exclusive}", os.O_RDONLY | os.O_CLOEXEC)  # keeps the device number from being reused
    try:
        try:
            refuse_unless_ext4(exclusive, wanted)
        finally:
            os.close(exclusive)
        check(wanted)
        if os.getppid() != parent:
            raise Refusal("the agent that requested the mount is gone")
        point.mkdir(mode=0o755, parents=True, exist_ok=True)
        try:
            call("mount", wanted.path.encode(), os.fsencode(point), b"ext4", FLAGS, DATA)
        except OSError as error:
            raise Damaged(str(error)) if error.errno == errno.EUCLEAN else error from error
        check_mounted(wanted, point)
    finally:
        os.close(pin)


def is_mounted_at(lines: list[Line], wanted: Wanted, point: Path) -> bool:
    """Whether it is mounted there already. Refusal if it is mounted elsewhere, or another device is there."""
    there = [line.number for line in lines if line.point == str(point)]
    if there and there[-1] == wanted.number:
        return True
    if there:
        raise Refusal(f"another device is mounted at {point}: {text(there[-1])}, wanted {text(wanted.number)}")
    if elsewhere := [line.point for line in lines if line.number == wanted.number]:
        raise Refusal(f"{wanted.path} is mounted already, at {', '.join(elsewhere)}")
    return False


def refuse_unless_ext4(handle: int, wanted: Wanted) -> None:
    """e2fsck would restore an old ext4 from a backup superblock under newer content, so it may only see an ext4."""
    found = proof.judge(proof.seen(handle), proof.head(handle, wanted.size), 0, wanted.size)
    if found.content != proof.EXT4:
        raise Refusal(f"not mounted, {wanted.path} is {found.content}: {found.description}")


def check(wanted: Wanted) -> None:
    """Repair only what is safe (`-p`): `-y` would delete what it does not understand."""
    status, output = tools.run("e2fsck", "-p", wanted.path)
    if status in (CLEAN, MENDED):
        return
    why = f"e2fsck could not mend {wanted.path} by itself, it ended with {status}: {output}"
    raise Damaged(why) if 0 < status < OPERATIONAL else Refusal(why)  # from 8 on: operational errors


def check_mounted(wanted: Wanted, point: Path) -> None:
    device = point.stat().st_dev
    number = (os.major(device), os.minor(device))
    if number != wanted.number:
        call("umount2", os.fsencode(point), DO_NOT_FOLLOW)
        raise Refusal(f"{text(number)} appeared at {point}, not {text(wanted.number)}; it was unmounted again")


def unmount(point: Path, number: tuple[int, int]) -> None:
    """Unmount the device from the point, and wait a moment for it to be gone everywhere."""
    # Held open, so that its number is not reused before the check ends.
    pin = pinned(number)
    try:
        found = False
        while [line.number for line in table() if line.point == str(point)][-1:] == [number]:
            found = True
            take_away(point, number)
        until = time.monotonic() + LINGERING
        while reason := still_there(number, pin if found else None):
            if time.monotonic() > until:
                raise Refusal(reason)
            time.sleep(PAUSE)
    finally:
        if pin is not None:
            os.close(pin)


def pinned(number: tuple[int, int]) -> int | None:
    """A handle of the device by its number; None if it cannot be opened, as after a detach."""
    node = Path("/dev") / f".protokube-{os.getpid()}"
    try:
        node.unlink(missing_ok=True)  # left by a killed child with the same process id
        os.mknod(node, stat.S_IFBLK | 0o600, os.makedev(*number))
        try:
            return os.open(node, os.O_RDONLY | os.O_CLOEXEC)
        finally:
            node.unlink()
    except OSError:
        return None


def take_away(point: Path, number: tuple[int, int]) -> None:
    try:
        call("umount2", os.fsencode(point), DO_NOT_FOLLOW)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        who = "; ".join(users(number)) or "the kernel does not say by whom"
        raise Refusal(f"{point} is in use: {who}") from error


def still_there(number: tuple[int, int], pin: int | None) -> str:
    """Where the device is still mounted; "" if nowhere."""
    if points := [line.point for line in table() if line.number == number]:
        return f"{text(number)} is still mounted at {', '.join(points)}"
    if showing := shown_anywhere(number):
        return f"{text(number)} is still mounted in the mount namespace of process {', '.join(map(str, showing[:5]))}"
    if pin is not None and is_claimed(pin):
        return f"{text(number)} is in no mount table, but still in use: {'; '.join(users(number)) or 'by the kernel'}"
    return ""


def is_claimed(pin: int) -> bool:
    """Whether the device is open exclusively."""
    try:
        os.close(os.open(f"/proc/self/fd/{pin}", os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        return error.errno == errno.EBUSY
    return False


def call(name: str, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
