"""Where versions of protokube's single file are on a machine, which of them are in use, and which may go.

    /opt/protokube/0.9.0-3f2a…/protokube     one directory for each version, never changed
    /opt/protokube/current -> 0.9.0-3f2a…    replaced at once: whoever starts protokube gets the old or the new one
    /opt/protokube/former -> 0.8.2-91bc…     to return to
    /usr/local/bin/protokube -> /opt/protokube/current/protokube

What is hard is to remove no version that runs. A process that was started by the link does not show which version it
is, so as long as one lives that began before the link was last changed, nothing is removed.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import time
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from protokube import __version__
from protokube.host.running import SLACK
from protokube.nodeup.values import Version

HOME = "/opt/protokube"
PROGRAM, CURRENT, FORMER = "protokube", "current", "former"
COMMAND = "/usr/local/bin/protokube"
TARGET = f"{HOME}/{CURRENT}/{PROGRAM}"
NAME = re.compile(r"[0-9][0-9A-Za-z.+]*-[0-9a-f]{12}")
"""Of the directory of a version; others below HOME are not ours."""
PROC = Path("/proc")
MOST_WORDS = 4
"""In the command line of a process, the program is one of the first words: interpreters come before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What is below HOME."""

    versions: frozenset[str]
    current: str
    former: str


def superfluous(found: Installed, wanted: str, running: Collection[str] | None) -> tuple[str, ...]:
    """Versions that may be removed once `wanted` is the current one; `running` is None if that is not known."""
    if running is None:
        return ()
    former = found.current if found.current != wanted else found.former
    return tuple(sorted(found.versions - {wanted, former, *running}))


def running_file() -> Path | None:
    """The single file that this process was started from; None if protokube was installed in another way."""
    path = Path(sys.argv[0]).absolute()
    return path if path.is_file() and zipfile.is_zipfile(path) else None


def version_of(file: Path) -> Version:
    """The task that installs this file, of the version that runs now."""
    with file.open("rb") as opened:
        sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
    return Version(version=__version__, sha256=sha256, source=str(file.resolve()))


def running(changed: float, proc: Path = PROC, now: Callable[[], float] = time.time) -> frozenset[str] | None:
    """The versions that processes run; None if some process may run any. `changed`: when the link last was."""
    found = set()
    for pid, words in _processes(proc):
        for word in words[:MOST_WORDS]:
            path = os.path.normpath(word)
            if path in (COMMAND, TARGET):
                if _began(proc, pid, now()) <= changed + SLACK:
                    return None
            elif path.startswith(f"{HOME}/"):
                found.add(path.removeprefix(f"{HOME}/").split("/")[0])
    return frozenset(found)


def _processes(proc: Path) -> Iterator[tuple[str, list[str]]]:
    for folder in _numbers(proc):
        try:
            words = (proc / folder / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        yield folder, [word.decode("utf-8", "replace") for word in words]


def _numbers(proc: Path) -> Iterable[str]:
    return sorted(each.name for each in proc.iterdir() if each.name.isdecimal())


def _began(proc: Path, pid: str, now: float) -> float:
    """Seconds since 1970; 0 if the process has ended meanwhile, which is on the safe side."""
    try:
        ticks = int((proc / pid / "stat").read_text().rpartition(")")[2].split()[19])
        booted = now - float((proc / "uptime").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0
    return booted + ticks / os.sysconf("SC_CLK_TCK")
