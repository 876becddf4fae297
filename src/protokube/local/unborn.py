"""A cluster whose first `up` was interrupted so early that it has no data yet: such leftovers may be removed.

The hard part is to be sure. Marks say what agents have done with a volume, and a disk image that was never written to
has no blocks; both must agree, and no generation record may be closed. Agents format disks at any moment, so what was
seen while one ran proves nothing: everything is stopped first, and then looked at again.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import closing, suppress

from protokube.errors import ProtokubeError, Refused
from protokube.local.base import private
from protokube.local.base.paths import Paths
from protokube.local.cloud import cleanup, stopping
from protokube.members.generation import decode, is_untouched
from protokube.store import layout
from protokube.store.file import FileStore

PATIENCE = 5.0


def why_kept(paths: Paths) -> str:
    """What shows that there may be data; empty if there can be none."""
    try:
        marks = _marks(paths)
    except sqlite3.Error as why:
        return f"{paths.database} cannot be read: {why}"
    for volume, mark in sorted(marks.items()):
        if not is_untouched(mark):
            return f"volume {volume} is marked {mark}"
    for image in sorted(paths.disks.glob("*")):
        try:
            if not marks.get(image.stem) and image.stat().st_blocks:
                return f"{image} was written to"
        except OSError as why:  # such as a link to a disk that is not mounted
            return f"{image} cannot be read: {why.strerror}"
    return _closed(paths)


def hold(paths: Paths) -> int:
    """Keep the cluster from being discarded by another `up`, until this process ends or closes the descriptor.

    Creates its folders. Waits for an `up` that is discarding it; that removes the file of the lock, too, and a lock on
    a removed file would keep nobody out.
    """
    while True:
        if not paths.is_ours():
            paths.create()
        with suppress(FileNotFoundError):
            lock = private.open_file(paths.up_lock, os.O_RDWR)
            fcntl.flock(lock, fcntl.LOCK_SH)
            if _is_there(lock, paths):
                paths.create()
                return lock
            os.close(lock)


def _is_there(lock: int, paths: Paths) -> bool:
    """Whether others who open the file of the lock get this one."""
    try:
        return os.path.samestat(os.fstat(lock), paths.up_lock.stat())
    except FileNotFoundError:
        return False


def discard(paths: Paths) -> None:
    """Stop everything of it and remove it. Refused, with all of it kept, if there may be data or it is being made."""
    lock = private.open_file(paths.up_lock, os.O_RDWR)
    try:
        if not _is_alone(lock, paths):
            hint = "wait for it, or end it"
            raise Refused(f"another `up` is just making {paths.cluster}, with other settings", hint=hint)
        _discard(paths)
    finally:
        os.close(lock)


def _is_alone(lock: int, paths: Paths) -> bool:
    """Whether no other `up` holds the cluster, nor has just made it anew."""
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _is_there(lock, paths)
    return False


def _discard(paths: Paths) -> None:
    if not why_kept(paths):
        stopping.stop(paths)
    if why := why_kept(paths):
        hint = f"`protokube up --cluster {paths.cluster}`, without other settings, goes on with it"
        raise Refused(f"{paths.cluster} may have data, so it is kept", saw=why, hint=hint)
    cleanup.remove(paths)


def _marks(paths: Paths) -> dict[str, str]:
    """By volume, also of deleted ones."""
    if not paths.database.is_file():
        return {}
    with closing(sqlite3.connect(f"{paths.database.as_uri()}?mode=ro", uri=True, timeout=PATIENCE)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'volumes'").fetchone():
            return {}  # the daemon ended before it made its tables
        return dict(connection.execute("SELECT id, mark FROM volumes").fetchall())


def _closed(paths: Paths) -> str:
    """Which generation record is closed or cannot be read; empty if none."""
    if not paths.store.is_dir():
        return ""
    store = FileStore(paths.store)
    try:
        for path in store.list_paths(layout.etcd_generations(paths.cluster)):
            found = decode(store.read(path).data) if path.endswith(layout.GENERATION) else None
            if path.endswith(layout.GENERATION) and (found is None or not found.open):
                return f"{path} is {'closed' if found else 'damaged'}"
    except ProtokubeError as why:
        return why.message
    return ""
