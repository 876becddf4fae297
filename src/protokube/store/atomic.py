"""Atomic and durable file writes for the file store: after a crash a file has its old or its new content.

A name appears or changes in one step (link, rename) and only after the content is on the disk. The folder
is flushed too: without that, a power cut can lose a rename although the file was flushed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protokube.errors import Refused, TryLater
from protokube.store import Unsure
from protokube.store.paths import RESERVED

LOCK = RESERVED + "lock"
POLL_SECONDS = 0.003
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)  # errors of vfat and some FUSE file systems


def write_new(place: Path, data: bytes, mode: int) -> None:
    """Create a file. Raises FileExistsError if it exists, without changing it."""
    with _unfinished(place, data, mode) as draft:
        try:
            os.link(draft, place)  # unlike a rename, a link never replaces a file
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            raise Refused(
                f"cannot create {place} safely: its file system has no hard links",
                saw=error.strerror or str(error),
                hint="put the store on ext4, xfs, btrfs, tmpfs or NFS",
            ) from error
    _settle(place)


def overwrite(place: Path, data: bytes, mode: int) -> None:
    """Make a file hold the data, whether it was there or not."""
    with _unfinished(place, data, mode) as draft:
        draft.replace(place)
    _settle(place)


def _settle(place: Path) -> None:
    """Flush the folder. The new name is visible already, so a disk error now leaves the result unsure."""
    try:
        flush_folder(place.parent)
    except OSError as error:
        raise Unsure(
            f"cannot tell whether {place} would survive a power cut",
            saw=error.strerror or str(error),
            hint="look at the disk's health with `dmesg`, then read it again before deciding",
        ) from error


@contextmanager
def _unfinished(place: Path, data: bytes, mode: int) -> Iterator[Path]:
    """The data, flushed, in a draft file that every reader ignores; removed afterwards."""
    draft = place.with_name(f"{RESERVED}draft-{secrets.token_hex(8)}")
    try:
        # Private until complete; fchmod then sets the exact mode, regardless of the umask.
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def make_folder(place: Path, mode: int) -> None:
    """Create one folder durably, with exactly this mode; an existing folder keeps its mode."""
    try:
        place.mkdir(mode=0o700)
    except FileExistsError:
        if not place.is_dir():
            raise
        return
    place.chmod(mode)
    flush_folder(place.parent)


def flush_folder(place: Path) -> None:
    """fsync a folder, so that its names are on the disk."""
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(root: Path, seconds: float) -> Iterator[None]:
    """Be the only writer below a root, among threads and processes. Raises TryLater after some seconds.

    The kernel releases the lock when its holder dies, so a killed process does not block others.
    """
    deadline = time.monotonic() + seconds
    while (handle := _lock_now(root / LOCK)) is None:
        if time.monotonic() > deadline:
            raise TryLater(
                f"another process has held the lock of {root} for {seconds:g} seconds",
                hint=f"find it with `fuser -v {root / LOCK}`; the lock goes with the process",
            )
        time.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        os.close(handle)


def _lock_now(place: Path) -> int | None:
    """A handle that holds the lock, or None while another writer holds it."""
    handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle
