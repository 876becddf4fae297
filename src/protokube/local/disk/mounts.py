"""Find the mounts of a device in all mount namespaces of this machine, and unmount them.

A mount namespace is reached through any process in it. One without processes, or one created a moment ago, is not
found: a caller that must know that a device is unused checks the device, too.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import struct
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from protokube.local.base.syscalls import CLONE_NEWNS, MNT_DETACH, setns, unshare

# sched.h, fs.h, ext4.h
CLONE_FS = 0x200
FREEZE, THAW, SHUTDOWN = 0xC0045877, 0xC0045878, 0x8004587D
WITHOUT_FLUSHING_THE_LOG = 2
PATIENCE = 2.0
"""Seconds for a file system to freeze."""

_libc = ctypes.CDLL(None)


@dataclass(frozen=True, slots=True)
class MountedAt:
    """A device at a mount point, as a process sees it."""

    pid: int
    number: tuple[int, int]
    point: Path

    def __str__(self) -> str:
        return f"mounted at {self.point} for process {self.pid}"


def who_has(numbers: Collection[tuple[int, int]]) -> Sequence[MountedAt]:
    """Every mount of these devices, once for each mount namespace."""
    if not numbers:
        return []
    wanted = [f" {major}:{minor} " for major, minor in numbers]
    found: list[MountedAt] = []
    for pid, table in one_table_of_each_namespace():
        if any(each in table for each in wanted):  # most tables have none: asked while a host is waited for
            found += [mount for mount in read_table(pid, table) if mount.number in numbers]
    return found


def one_table_of_each_namespace(proc: Path = Path("/proc")) -> Iterator[tuple[int, str]]:
    """A process of each mount namespace, and its mount table; if one ends before it was read, the next is asked."""
    seen: set[str] = set()
    for process in filter(str.isdecimal, os.listdir(proc)):  # noqa: PTH208  there may be thousands
        with suppress(OSError):  # it ended meanwhile
            namespace = os.readlink(f"{proc}/{process}/ns/mnt")  # noqa: PTH115
            if namespace not in seen:
                table = (proc / process / "mountinfo").read_text()
                if table:  # empty for a process that has exited and was not waited for
                    seen.add(namespace)
                    yield int(process), table


def read_table(pid: int, table: str) -> Iterator[MountedAt]:
    for line in table.splitlines():
        words = line.split(" ")
        major, _, minor = words[2].partition(":")
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), words[4])
        yield MountedAt(pid, (int(major), int(minor)), Path(point))


@contextmanager
def at_rest(found: Sequence[MountedAt]) -> Iterator[None]:
    """Freeze a file system while its device is cut off, and shut it down afterwards.

    Frozen, it has no I/O in flight: what it acknowledged is on the disk, and it acknowledges nothing more. Shut down,
    every operation on it fails with EIO at once. A file system that cannot be reached, or does not freeze in time, is
    fenced by the device alone, which must be cut in any case.
    """
    folder = _opened(found)
    if folder is None:
        yield
        return
    frozen, is_cut = threading.Event(), threading.Event()
    thread = threading.Thread(target=_hold_frozen, args=(folder, frozen, is_cut), daemon=True)
    thread.start()
    frozen.wait(PATIENCE)
    try:
        yield
    finally:
        is_cut.set()
        thread.join(PATIENCE)


def thaw(found: Sequence[MountedAt]) -> None:
    """Thaw a file system that was left frozen by a process that was killed."""
    folder = _opened(found)
    if folder is not None:
        _ioctl(folder, THAW, 0)
        os.close(folder)


def _opened(found: Sequence[MountedAt]) -> int | None:
    """Open the mount point through any process that sees it; skip one covered by another mount or already ended."""
    for mount in found:
        with suppress(OSError):
            inside = Path(f"/proc/{mount.pid}/root") / mount.point.relative_to("/")
            folder = os.open(inside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            device = os.fstat(folder).st_dev
            if (os.major(device), os.minor(device)) == mount.number:
                return folder
            os.close(folder)
    return None


def _hold_frozen(folder: int, frozen: threading.Event, is_cut: threading.Event) -> None:
    """Runs in its own thread: freezing flushes everything, which may take long."""
    try:
        _ioctl(folder, FREEZE, 0)
        frozen.set()
        is_cut.wait()
        _ioctl(folder, SHUTDOWN, WITHOUT_FLUSHING_THE_LOG)
        _ioctl(folder, THAW, 0)  # in any case: frozen when its last mount goes, it would stay for ever
    finally:
        os.close(folder)


def _ioctl(folder: int, request: int, argument: int) -> None:
    with suppress(OSError):  # the file system cannot freeze, or is frozen already
        fcntl.ioctl(folder, request, struct.pack("I", argument))


def take_away(mount: MountedAt) -> None:
    """Unmount it lazily inside its namespace; open files there stay open, on a detached file system."""
    thread = threading.Thread(target=_unmount_inside, args=(mount,), name=f"unmount {mount.point}")
    thread.start()
    thread.join()


def _unmount_inside(mount: MountedAt) -> None:
    """Runs in its own thread, which stays in the other namespace until it ends; other threads do not move."""
    with suppress(OSError):  # it ended meanwhile; the caller lists the mounts again
        namespace = os.open(f"/proc/{mount.pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        root = os.open(f"/proc/{mount.pid}/root", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            unshare(CLONE_FS)
            setns(namespace, CLONE_NEWNS)
            os.fchdir(root)
            os.chroot(".")
            _libc.umount2(os.fsencode(mount.point), MNT_DETACH)
        finally:
            os.close(root)
            os.close(namespace)
