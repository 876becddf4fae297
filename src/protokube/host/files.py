"""Atomic and durable writes of small files that other programs watch.

kubelet starts every manifest in its folder, so a half-written file must never have a watched name. A file that has not
changed is not written again, since a new file means a restart. The folder is flushed too, or a power cut may lose the
rename.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomic(
    path: Path, data: bytes, mode: int = 0o644, *, staging: Path | None = None, durable: bool = True
) -> bool:
    """Make a file hold the data, with exactly this mode; return whether that changed anything.

    The draft is a dot file beside it, or in `staging`, an unwatched folder on the same file system.
    Without `durable` nothing is flushed, and the file may be old or missing after a power cut.
    """
    if holds(path, data, mode):
        return False
    if is_special(path):
        raise OSError(errno.EEXIST, "it is a device, pipe or socket, not a file", str(path))
    with draft(path, staging) as unfinished:
        # Private until it is complete; fchmod then sets the exact mode, regardless of the umask.
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            if durable:
                os.fsync(file.fileno())
        unfinished.replace(path)
    if durable:
        flush_folder(path.parent)
    return True


def link_atomic(target: Path, link: Path) -> bool:
    """Make a symbolic link point to the target, atomically; return whether that changed anything."""
    if link.is_symlink() and link.readlink() == target:
        return False
    with draft(link, None) as unfinished:
        unfinished.symlink_to(target)
        unfinished.replace(link)
    flush_folder(link.parent)
    return True


def remove(path: Path) -> bool:
    """Remove a file or a link durably; return whether there was one."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    flush_folder(path.parent)
    return True


def read_or_none(path: Path) -> bytes | None:
    """The content; None only if there is no such file, never after a read error."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def holds(path: Path, data: bytes, mode: int) -> bool:
    """Whether a file, and not a link to one, has this content and mode."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode) or stat.S_IMODE(status.st_mode) != mode or status.st_size != len(data):
        return False
    return read_or_none(path) == data


def is_special(path: Path) -> bool:
    """Whether the path is something that a file must not replace, such as /dev/null."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))


@contextmanager
def draft(path: Path, staging: Path | None) -> Iterator[Path]:
    """A draft name that no watcher looks at; the draft is removed afterwards."""
    name = (staging or path.parent) / f".{path.name}.{secrets.token_hex(8)}"
    try:
        yield name
    finally:
        name.unlink(missing_ok=True)


def flush_folder(path: Path) -> None:
    """fsync a folder, so that its names are on the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
