"""Remember the digests of large files, so that looking at a machine that is as it should be does not read them again.

A record counts for a file only as long as its inode, size and times are those that were recorded: any write changes
the time of the inode, which no program can set. Where a record is missing or does not fit, the file is read.
Records lie in the cache, and may be lost without harm.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from protokube.binaries.mirrors import digest
from protokube.nodeup.assets.placing import write_all
from protokube.nodeup.machine import Machine

FOLDER = "records"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """A file as it was when its digest was computed."""

    sha256: str
    size: int
    inode: int
    modified: int
    changed: int
    """Nanoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What one task left on the machine."""

    key: str
    source: str
    """What it came from: the digest of the asset, and the member."""
    files: Mapping[str, Stamp]
    """By paths of the machine."""
    notes: Mapping[str, str]
    """What else the task wants to know again."""


def stamp(path: Path, sha256: str) -> Stamp:
    """The file as it is now."""
    status = path.stat()
    return Stamp(
        sha256=sha256, size=status.st_size, inode=status.st_ino, modified=status.st_mtime_ns, changed=status.st_ctime_ns
    )


def digest_of(path: Path, known: Stamp | None) -> str:
    """The digest of a file, read only if it is not as it was; empty if there is no file, or a link to one."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return ""
        return known.sha256 if known and stamp(path, known.sha256) == known else digest(path)
    except FileNotFoundError:
        return ""


def write_record(machine: Machine, record: Record) -> None:
    """Keep it until the next one of this key; one that says the same is left as it is."""
    if read_record(machine, record.key) == record:
        return
    tree = asdict(record)
    write_all(_place(machine, record.key), json.dumps(tree, indent=1, sort_keys=True).encode() + b"\n", 0o600)


def read_record(machine: Machine, key: str) -> Record | None:
    """The last one of this key; None if there is none, or none that can be read."""
    try:
        tree: Any = json.loads(_place(machine, key).read_bytes())
        files = {path: Stamp(**fields) for path, fields in tree["files"].items()}
        found = Record(key=tree["key"], source=tree["source"], files=files, notes=dict(tree["notes"]))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return found if found.key == key else None


def owner_is_ours(status: os.stat_result) -> bool:
    """Whether a file belongs to whom nodeup runs as, which is root."""
    return (status.st_uid, status.st_gid) == (os.geteuid(), os.getegid())


def _place(machine: Machine, key: str) -> Path:
    name = hashlib.sha256(key.encode()).hexdigest()[:32]
    return machine.path(f"{machine.cache}/{FOLDER}/{name}.json")
