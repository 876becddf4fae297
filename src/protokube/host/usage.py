"""Prove that no process of this machine uses a file system that stays mounted.

A process uses it by an open file, a mapped file, its working directory, its root or its executable. A container that is
being set up has none of these yet, but a bind mount of a folder of the volume in its own mount namespace. A mount of
the whole file system in another namespace does not count: every service with its own namespace has a copy of all
mounts.

An empty result must be a proof, so whatever cannot be inspected is an error: a process that hides its files, a /proc
that hides processes, a timeout.
"""

from __future__ import annotations

import ctypes
import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

from protokube.errors import TryLater
from protokube.host.child import mountinfo
from protokube.host.child.holders import FEW, called, leads_to, pointed_to
from protokube.host.child.mountinfo import GONE, PROC, processes

SECONDS = 5.0
FORBIDDEN = (errno.EACCES, errno.EPERM)
ALL_SHOWN = frozenset({"hidepid=0", "hidepid=off"})
PTRACE = 19
"""CAP_SYS_PTRACE: a process with it sees all others, even with hidepid."""


def used_by(number: tuple[int, int], *, seconds: float = SECONDS, proc: Path = PROC) -> list[str]:
    """A few processes, in words: 'etcd (pid 12) has open /mnt/master-vol-1/member/wal/0.wal', without our own.

    TryLater if it cannot be determined.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    until = time.monotonic() + seconds
    _refuse_hidden(proc)
    own = _namespace(proc / "self")
    inspected: set[tuple[Path, Path]] = set()
    found: list[str] = []
    for folder in processes(proc):
        if len(found) == FEW:
            break
        if time.monotonic() > until:
            raise TryLater(f"there are too many processes to inspect all of them within {seconds:g} s")
        if int(folder.name) == os.getpid():
            continue
        try:
            use = _use(libc, folder, number) or _mounted(folder, number, own, inspected)
        except OSError as error:
            if error.errno in GONE:
                continue
            raise TryLater(
                f"what {called(folder)} (pid {folder.name}) uses cannot be seen: {error.strerror}"
            ) from error
        if use:
            found.append(f"{called(folder)} (pid {folder.name}) {use}")
    return found


def _use(libc: ctypes.CDLL, folder: Path, number: tuple[int, int]) -> str:
    for place, does in _places(folder):
        try:
            if leads_to(libc, place, number):
                return f"{does} {pointed_to(place)}"
        except OSError as error:
            if error.errno in FORBIDDEN:
                raise
            # closed meanwhile, or on an unresponsive network file system: not on this device
    wanted = f" {number[0]:02x}:{number[1]:02x} "
    maps = (folder / "maps").read_text(errors="surrogateescape")
    mapped = next((line for line in maps.splitlines() if wanted in line), "")
    return f"has mapped {mapped.split(maxsplit=5)[-1]}" if mapped else ""


def _places(folder: Path) -> Iterator[tuple[str, str]]:
    yield f"{folder}/exe", "runs"
    for task in _tasks(folder):
        yield f"{task}/cwd", "works in"
        yield f"{task}/root", "has its root at"
        for handle in (task / "fd").iterdir():
            yield str(handle), "has open"


def _tasks(folder: Path) -> list[Path]:
    """Threads share open files, so the main thread is enough; if it has exited, inspect all others."""
    try:
        (folder / "exe").readlink()
    except FileNotFoundError:
        return [*(folder / "task").iterdir()]
    return [folder]


def _mounted(folder: Path, number: tuple[int, int], own: Path | None, inspected: set[tuple[Path, Path]]) -> str:
    view = mountinfo.seen_from(folder)
    if view is not None and (view[0] == own or view in inspected):
        return ""
    wanted = f"{number[0]}:{number[1]}"
    for line in (folder / "mountinfo").read_text(errors="surrogateescape").splitlines():
        _, _, device, part, point, *_ = line.split(" ")
        if device == wanted and part != "/":
            return f"has {mountinfo.unescape(part)} mounted at {mountinfo.unescape(point)}"
    if view is not None:
        inspected.add(view)
    return ""


def _namespace(folder: Path) -> Path | None:
    try:
        return (folder / "ns/mnt").readlink()
    except OSError:
        return None


def _refuse_hidden(proc: Path) -> None:
    for line in mountinfo.table(proc):
        hides = {each for each in line.options if each.startswith("hidepid=")} - ALL_SHOWN
        if line.type == "proc" and line.point == str(proc) and hides and not _sees_all(proc):
            raise TryLater(f"{proc} is mounted with {', '.join(sorted(hides))}, so processes may be hidden from us")


def _sees_all(proc: Path) -> bool:
    status = (proc / "self/status").read_text()
    held = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(held, 16) >> PTRACE & 1)
