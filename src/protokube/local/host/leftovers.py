"""Find everything of a local cloud on this machine, from the kernel alone: works whatever was killed, at any time.

Everything found provably belongs to one state folder: a process by its root or its log, which are in the folder of a
host; slirp4netns by its log; a loop device by its backing file; the daemon by its lock; the switch and cgroups by
names that are derived from the path of the folder.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from protokube.local.base.paths import Paths
from protokube.local.disk import loops, mounts
from protokube.local.disk.loops import Loop
from protokube.local.disk.mounts import MountedAt
from protokube.local.host import cgroups, network

LOCK = struct.Struct("hhqqi4x")
"""struct flock: type, whence, start, length, pid."""
LOG = "log/init.log"
"""In a host's folder: the log of `boot`, and then of init."""


def daemon(paths: Paths) -> int | None:
    """The pid of the daemon that holds the lock of this folder."""
    try:
        lock = os.open(paths.lock_file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        query = LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = LOCK.unpack(fcntl.fcntl(lock, fcntl.F_GETLK, query))
        return int(pid) if kind != fcntl.F_UNLCK else None
    finally:
        os.close(lock)


@dataclass(frozen=True, slots=True)
class Process:
    """The init of a host, or a process that is starting it."""

    host: str
    pid: int
    first: bool


def processes(paths: Paths) -> Sequence[Process]:
    """The init of each host, and processes that are starting one."""
    runs, logs = _by_identity(paths, "run"), _by_identity(paths, LOG)
    found: list[Process] = []
    for process in Path("/proc").glob("[0-9]*") if runs or logs else ():
        with suppress(OSError, ValueError):
            host = runs.get(_identity(process / "root/run")) or logs.get(_identity(process / "fd/1"))
            depth = _depth(process)
            if host is not None and depth in ((), (1,)):
                found.append(Process(host, int(process.name), first=depth == (1,)))
    return found


def inits(paths: Paths) -> Mapping[str, int]:
    """The pid of each running host's init, by host name."""
    return {process.host: process.pid for process in processes(paths) if process.first}


def outside_processes(paths: Paths) -> Sequence[int]:
    """The slirp4netns processes of this cloud; they end with the daemon, a moment later."""
    try:
        log = _identity(paths.outside_log)
    except OSError:
        return []
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if _identity(process / "fd/1") == log:
                found.append(int(process.name))
    return found


def _by_identity(paths: Paths, inside: str) -> Mapping[tuple[int, int], str]:
    """Host names by device and inode of their /run or log, which identify a host uniquely."""
    found: dict[tuple[int, int], str] = {}
    for folder in paths.hosts.glob("*"):
        with suppress(OSError):
            found[_identity(folder / inside)] = folder.name
    return found


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return (status.st_dev, status.st_ino)


def _depth(process: Path) -> tuple[int, ...]:
    """Its pids in the PID namespaces below ours: (1,) is the init of a host; pods are nested deeper."""
    line = next(line for line in (process / "status").read_text().splitlines() if line.startswith("NSpid:"))
    return tuple(int(word) for word in line.split()[2:])


def devices(paths: Paths) -> Sequence[Loop]:
    return loops.bound_under(paths.disks)


def mounted(paths: Paths) -> Sequence[MountedAt]:
    """Every mount of one of our disks, in any namespace."""
    return mounts.who_has({loop.number for loop in devices(paths)})


def switch(paths: Paths) -> Path | None:
    path = network.switch_path(paths.switch)
    return path if path.exists() else None


def control_groups(paths: Paths) -> Sequence[Path]:
    return cgroups.find(cgroups.name(paths.switch))


def describe(paths: Paths) -> list[str]:
    """Everything that is left, one line each."""
    return [*running(paths), *([f"folder: {paths.root}"] if paths.root.exists() else [])]


def running(paths: Paths) -> list[str]:
    """Everything that is left but the state on the disk, one line each."""
    lines = [f"daemon: process {pid}" for pid in [daemon(paths)] if pid is not None]
    lines += [f"way outside: process {pid}" for pid in outside_processes(paths)]
    lines += [f"host {process.host}: process {process.pid}" for process in processes(paths)]
    lines += [f"disk {mount.number[0]}:{mount.number[1]} {mount}" for mount in mounted(paths)]
    lines += [f"{loop.path}: bound to {loop.image}" for loop in devices(paths)]
    lines += [f"control group: {path}" for path in control_groups(paths)]
    return [*lines, *(f"network namespace: {path}" for path in [switch(paths)] if path is not None)]
