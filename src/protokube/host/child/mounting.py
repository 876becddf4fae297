"""Check and mount an ext4; take a mount away and make sure that it is gone everywhere.

A mount is copied into every mount namespace made after it, and lives on there when ours is gone. So "unmounted" is not
what umount says: no process's table may show the device, and the kernel must let it be claimed.
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
"""After an error nothing more is written. Also after one of file data: etcd would go on with what is only in memory."""
CLEAN, MENDED, OPERATIONAL = 0, 1, 8
LINGERING = 1.0
"""The mount namespace of a process that has just died goes a moment later."""


class Damaged(Refusal):
    """e2fsck found errors that it does not mend by itself."""


def mount(wanted: Wanted, point: Path, parent: int) -> None:
    """Mount the device at the point, unless it is mounted there already."""
    if is_mounted_at(table(), wanted, point):
        return
    exclusive = claim(wanted, os.O_RDONLY)
    pin = os.open(f"/proc/self/fd/{exclusive}", os.O_RDONLY | os.O_CLOEXEC)  # the number stays this device's
    try:
        try:
            refuse_unless_ext4(exclusive, wanted)
        finally:
            os.close(exclusive)
        check(wanted)
        if os.getppid() != parent:
            raise Refusal("whoever asked for the mount is gone")
        point.mkdir(mode=0o755, parents=True, exist_ok=True)
        try:
            call("mount", wanted.path.encode(), os.fsencode(point), b"ext4", FLAGS, DATA)
        except OSError as error:
            raise Damaged(str(error)) if error.errno == errno.EUCLEAN else error from error
        check_mounted(wanted, point)
    finally:
        os.close(pin)


def is_mounted_at(lines: list[Line], wanted: Wanted, point: Path) -> bool:
    """Whether there is nothing to do. Refusal if the device is somewhere else, or something else is at the point."""
    there = [line.number for line in lines if line.point == str(point)]
    if there and there[-1] == wanted.number:
        return True
    if there:
        raise Refusal(f"another device is mounted at {point}: {text(there[-1])}, wanted {text(wanted.number)}")
    if elsewhere := [line.point for line in lines if line.number == wanted.number]:
        raise Refusal(f"{wanted.path} is mounted already, at {', '.join(elsewhere)}")
    return False


def refuse_unless_ext4(handle: int, wanted: Wanted) -> None:
    """e2fsck digs out the copy of a superblock under anything that came later, so it may only see an ext4."""
    found = proof.judge(proof.seen(handle), proof.head(handle, wanted.size), 0, wanted.size)
    if found.content != proof.EXT4:
        raise Refusal(f"not mounted, {wanted.path} is {found.content}: {found.told}")


def check(wanted: Wanted) -> None:
    """Mend what is safe to mend (`-p`), and nothing else: `-y` would delete what it does not understand."""
    status, said = tools.run("e2fsck", "-p", wanted.path)
    if status in (CLEAN, MENDED):
        return
    why = f"e2fsck could not mend {wanted.path} by itself, it ended with {status}: {said}"
    raise Damaged(why) if 0 < status < OPERATIONAL else Refusal(why)  # from 8 on it could not look at all


def check_mounted(wanted: Wanted, point: Path) -> None:
    device = point.stat().st_dev
    number = (os.major(device), os.minor(device))
    if number != wanted.number:
        call("umount2", os.fsencode(point), DO_NOT_FOLLOW)
        raise Refusal(f"{text(number)} appeared at {point}, not {text(wanted.number)}; it was unmounted again")


def unmount(point: Path, number: tuple[int, int]) -> None:
    """Take the device away from the point, and wait a moment for it to be gone everywhere."""
    # Held open, so that its number is nobody else's until we have made sure.
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
    """A handle of the device, under whatever name or none; None if it cannot be opened, as when it was taken away."""
    node = Path("/dev") / f".protokube-{os.getpid()}"
    try:
        node.unlink(missing_ok=True)  # of a child with our number that was killed right here
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
    """Whether the kernel says that somebody has the device for himself."""
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
