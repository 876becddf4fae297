"""The mount tables of this and of every other process: a mount persists in each mount namespace that copied it.

Blanks in names are escaped in octal. A process in a chroot sees only a part of its namespace's table, so one process is
inspected for each pair of namespace and root.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
CHUNK = 1 << 16
ESCAPE = re.compile(r"\\([0-7]{3})")
GONE = (errno.ENOENT, errno.ESRCH, errno.EINVAL)
"""Errors of reading /proc/PID/mountinfo if the process has just exited, or is a zombie."""


class Line(NamedTuple):
    number: tuple[int, int]
    point: str
    type: str
    options: frozenset[str]
    id: int = 0


def parse(text: str) -> list[Line]:
    """Every mount, in the order of the table: of two at one point, the later one hides the earlier."""
    return [parse_line(line) for line in text.split("\n") if line]


def parse_line(line: str) -> Line:
    about_mount, _, about_system = line.partition(" - ")
    id_, _, number, _, point, mount_options, *_ = about_mount.split(" ")
    kind, _, system_options = about_system.split(" ", maxsplit=2)
    major, minor = (int(part) for part in number.split(":"))
    options = frozenset(mount_options.split(",")) | frozenset(system_options.split(","))
    return Line((major, minor), unescape(point), unescape(kind), options, int(id_))


def unescape(text: str) -> str:
    return ESCAPE.sub(lambda found: chr(int(found[1], 8)), text)


def table(proc: Path = PROC) -> list[Line]:
    """This process's mount table as it is now."""
    return parse(read(proc))


def read(proc: Path = PROC) -> str:
    file = open_table(proc)
    try:
        return read_table(file)
    finally:
        os.close(file)


def open_table(proc: Path = PROC) -> int:
    return os.open(f"{proc}/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)


def read_table(file: int) -> str:
    """Read from the current offset to the end. Unbuffered for speed: an agent reads it in every round."""
    return os.fsdecode(b"".join(iter(lambda: os.read(file, CHUNK), b"")))


def shown_anywhere(number: tuple[int, int], proc: Path = PROC) -> list[int]:
    """Processes whose mount table contains the device: one for each namespace and root."""
    wanted = f" {number[0]}:{number[1]} "
    inspected: set[tuple[Path, Path]] = set()
    showing = []
    for folder in processes(proc):
        try:
            if (view := seen_from(folder)) in inspected:
                continue
            shown = wanted in (folder / "mountinfo").read_text(errors="surrogateescape")
        except OSError as error:
            if error.errno not in GONE:
                raise
            continue
        if view:
            inspected.add(view)
        if shown:
            showing.append(int(folder.name))
    return showing


def seen_from(folder: Path) -> tuple[Path, Path] | None:
    """Namespace and root of a process; None if it has more privileges than we, and only its table is readable."""
    try:
        return (folder / "ns/mnt").readlink(), (folder / "root").readlink()
    except PermissionError:
        return None


def processes(proc: Path = PROC) -> list[Path]:
    return sorted((folder for folder in proc.iterdir() if folder.name.isdigit()), key=lambda folder: int(folder.name))
