"""The folder of manifests: list and parse its files, with a cache.

Links are followed, since the manifest of an etcd member is on its volume: a dangling link means no pod. A file that is
still open for writing is not read: half a YAML manifest is often a valid one, of another pod. The kernel refuses a
read lease (F_SETLEASE) for such a file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from protokube.local.base import syscalls
from protokube.local.pods.fields import PodProblem
from protokube.local.pods.plan import Reading
from protokube.local.pods.pods import read_pod

ENDINGS = (".manifest", ".yaml", ".json")
LARGEST = 1 << 20
LOOKS = 10
"""Listings at most: a missing file may have been renamed meanwhile, so two listings in a row must agree."""
EVENTS = syscalls.IN_CLOSE_WRITE | syscalls.IN_MOVED_FROM | syscalls.IN_MOVED_TO | syscalls.IN_CREATE
EVENTS |= syscalls.IN_DELETE | syscalls.IN_ATTRIB

Stamp = tuple[int, int, int, int, int]


class ManifestDir:
    """Caches what it read, and reads again only what changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, tuple[Stamp, Reading]] = {}
        self.handle = syscalls.inotify()
        """An inotify descriptor: readable on changes in the folder."""
        self.being_written = False
        """Whether the last listing found a file that is open for writing: list again soon."""

    def drain(self) -> None:
        """Discard pending events: `look` lists everything anyway."""
        with suppress(BlockingIOError):
            while os.read(self.handle, 65536):
                pass

    def look(self) -> Sequence[Reading]:
        """Every manifest file, sorted; creates a missing folder."""
        self._folder.mkdir(parents=True, exist_ok=True)
        syscalls.watch(self.handle, str(self._folder), EVENTS)  # each time: the folder may have been replaced
        before: set[str] | None = None
        for _ in range(LOOKS):
            found = self._list()
            names = {reading.file for reading in found}
            if names == before or names >= self._known.keys():
                break
            before = names
        self._known = {name: known for name, known in self._known.items() if name in names}
        return found

    def _list(self) -> list[Reading]:
        self.being_written = False
        readings = [self._read(entry) for entry in sorted(os.scandir(self._folder), key=lambda entry: entry.name)]
        return [reading for reading in readings if reading is not None]

    def _read(self, entry: os.DirEntry[str]) -> Reading | None:
        if entry.name.startswith("."):
            return None
        if not entry.name.endswith(ENDINGS):
            return Reading(file=entry.name, problem=f"passed over: its name ends in none of {', '.join(ENDINGS)}")
        try:
            # O_NONBLOCK: a named pipe must not block us.
            handle = os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as why:
            return Reading(file=entry.name, problem=f"cannot be opened: {why.strerror}")
        try:
            return self._read_open(entry.name, handle)
        except OSError as why:
            return Reading(file=entry.name, problem=f"cannot be read: {why.strerror}")
        finally:
            os.close(handle)

    def _read_open(self, name: str, handle: int) -> Reading:
        seen = os.fstat(handle)
        if not stat.S_ISREG(seen.st_mode):
            return Reading(file=name, problem="passed over: it is no file")
        stamp = (seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        if name in self._known and self._known[name][0] == stamp:
            return self._known[name][1]
        if _is_being_written(handle):
            self.being_written = True
            return Reading(file=name, problem="is being written")
        reading = _parse(name, os.read(handle, LARGEST + 1))
        self._known[name] = (stamp, reading)
        return reading


def _is_being_written(handle: int) -> bool:
    """Whether a process has the file open for writing."""
    try:
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as why:
        # Other errors: no leases here (some file systems, pipes).
        return why.errno == errno.EAGAIN
    return False


def _parse(name: str, content: bytes) -> Reading:
    if len(content) > LARGEST:
        return Reading(file=name, problem=f"larger than {LARGEST} bytes")
    try:
        return Reading(file=name, pod=read_pod(content.decode()))
    except UnicodeDecodeError:
        return Reading(file=name, problem="not UTF-8")
    except PodProblem as why:
        return Reading(file=name, problem=str(why))
