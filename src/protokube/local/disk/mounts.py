"""Who on this machine has a device mounted, in whichever mount namespace; and taking that away from them.

A mount namespace is reached through any process in it. One that no process is in, and one that was made a moment ago,
do not show up: whoever relies on "nobody has it" asks the device, too.
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
"""Seconds for a file system to come to rest."""

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
    found: list[MountedAt] = []
    for pid in one_process_of_each_namespace():
        with suppress(OSError):  # it ended meanwhile
            table = Path(f"/proc/{pid}/mountinfo").read_text()
            found += [mount for mount in read_table(pid, table) if mount.number in numbers]
    return found


def one_process_of_each_namespace() -> Iterator[int]:
    seen: set[Path] = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            namespace = (process / "ns/mnt").readlink()
            if namespace not in seen:
                seen.add(namespace)
                yield int(process.name)


def read_table(pid: int, table: str) -> Iterator[MountedAt]:
    for line in table.splitlines():
        words = line.split(" ")
        major, _, minor = words[2].partition(":")
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), words[4])
        yield MountedAt(pid, (int(major), int(minor)), Path(point))


@contextmanager
def at_rest(found: Sequence[MountedAt]) -> Iterator[None]:
    """Hold a file system still while its device is cut off, and end it for good afterwards.

    Held still, it has nothing under way: what it acknowledged is on the disk, and nothing more is acknowledged. Ended,
    whatever is done through it fails with EIO at once. One that cannot be reached, or does not come to rest in time,
    is left to the device, which must be cut in any case.
    """
    folder = _opened(found)
    if folder is None:
        yield
        return
    still, is_cut = threading.Event(), threading.Event()
    thread = threading.Thread(target=_hold_still, args=(folder, still, is_cut), daemon=True)
    thread.start()
    still.wait(PATIENCE)
    try:
        yield
    finally:
        is_cut.set()
        thread.join(PATIENCE)


def thaw(found: Sequence[MountedAt]) -> None:
    """Let a file system go on that somebody was holding still when he was killed."""
    folder = _opened(found)
    if folder is not None:
        _tell(folder, THAW, 0)
        os.close(folder)


def _opened(found: Sequence[MountedAt]) -> int | None:
    """The mount point through any process that sees it; it may be hidden behind another mount, or the process gone."""
    for mount in found:
        with suppress(OSError):
            inside = Path(f"/proc/{mount.pid}/root") / mount.point.relative_to("/")
            folder = os.open(inside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            device = os.fstat(folder).st_dev
            if (os.major(device), os.minor(device)) == mount.number:
                return folder
            os.close(folder)
    return None


def _hold_still(folder: int, still: threading.Event, is_cut: threading.Event) -> None:
    """In a thread of its own: coming to rest means writing everything out, and that may take its time."""
    try:
        _tell(folder, FREEZE, 0)
        still.set()
        is_cut.wait()
        _tell(folder, SHUTDOWN, WITHOUT_FLUSHING_THE_LOG)
        _tell(folder, THAW, 0)  # whoever froze it: still frozen when its last mount goes, it would stay for ever
    finally:
        os.close(folder)


def _tell(folder: int, request: int, argument: int) -> None:
    with suppress(OSError):  # a kind of file system that cannot, or somebody froze it before
        fcntl.ioctl(folder, request, struct.pack("I", argument))


def take_away(mount: MountedAt) -> None:
    """Unmount it lazily inside its namespace; open files there stay open, on a file system that is gone."""
    thread = threading.Thread(target=_unmount_inside, args=(mount,), name=f"unmount {mount.point}")
    thread.start()
    thread.join()


def _unmount_inside(mount: MountedAt) -> None:
    """In a thread of its own, which ends in the other namespace and takes no other thread there."""
    with suppress(OSError):  # it ended meanwhile; whoever asked looks again, at what is mounted then
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
