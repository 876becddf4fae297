"""Find the processes that use a device: those with the device itself or a file on it open.

An exclusive open detects file systems and other exclusive users, but not a program that simply opened the device and
writes to it; the open files of every process show that. A plain stat can hang on a dead network file system, so statx
is used without synchronisation.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from protokube.host.child.mountinfo import PROC, processes

HERE, DO_NOT_SYNC, ONLY_TYPE = -100, 0x4000, 1
STATX_BYTES = 256
MODE, NUMBERS = 28, 128
FEW = 4


def users(number: tuple[int, int], seconds: float = 5.0, proc: Path = PROC) -> list[str]:
    """A few processes, in words: 'etcd (pid 12) has open /dev/xvdu', without our own."""
    libc = ctypes.CDLL(None, use_errno=True)
    until = time.monotonic() + seconds
    found: list[str] = []
    for folder in processes(proc):
        if int(folder.name) == os.getpid():
            continue
        if len(found) == FEW or time.monotonic() > until:
            break
        for place, does in uses(folder):
            if refers_to(libc, place, number):
                found.append(f"{called(folder)} (pid {folder.name}) {does} {pointed_to(place)}")
                break
    return found


def uses(folder: Path) -> Iterator[tuple[str, str]]:
    """Everything by which a process can hold a device or a file system."""
    yield f"{folder}/cwd", "works in"
    yield f"{folder}/root", "has its root at"
    yield f"{folder}/exe", "runs"
    try:
        handles = list((folder / "fd").iterdir())
    except OSError:  # the process is gone
        return
    for handle in handles:
        yield str(handle), "has open"


def refers_to(libc: ctypes.CDLL, place: str, number: tuple[int, int]) -> bool:
    try:
        return leads_to(libc, place, number)
    except OSError:
        return False


def leads_to(libc: ctypes.CDLL, place: str, number: tuple[int, int]) -> bool:
    """As `refers_to`, but raises OSError if it cannot be determined. `libc` must be loaded with `use_errno`."""
    status = ctypes.create_string_buffer(STATX_BYTES)
    if libc.statx(HERE, place.encode(), DO_NOT_SYNC, ONLY_TYPE, status):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), place)
    (mode,) = struct.unpack_from("H", status, MODE)
    major, minor, on_major, on_minor = struct.unpack_from("IIII", status, NUMBERS)
    return (on_major, on_minor) == number or (stat.S_ISBLK(mode) and (major, minor) == number)


def called(folder: Path) -> str:
    try:
        return (folder / "comm").read_text(errors="replace").strip()
    except OSError:
        return "a process"


def pointed_to(place: str) -> str:
    try:
        return str(Path(place).readlink())
    except OSError:
        return "it"
