"""Put a large file in place: complete, flushed and of exactly this mode, or not at all.

Unlike `host.files.write_atomic` it takes a stream, and the draft beside the file has the same name each time: what a
kill left is overwritten by the next run, and nothing piles up. One process at a time works on a machine.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

from protokube.errors import Refused
from protokube.host.files import flush_folder, is_special

CHUNK = 1 << 20


def draft_of(path: Path) -> Path:
    """The draft of a file, a dot file beside it."""
    return path.with_name(f".{path.name}.protokube-new")


def write_draft(path: Path, read: Callable[[int], bytes], mode: int) -> Path:
    """Write the draft of a file from a stream, and flush it. `finish` gives it its name, `drop` removes it."""
    try:
        if is_special(path) or (path.is_dir() and not path.is_symlink()):
            raise OSError(errno.EEXIST, "it is not a file", str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = draft_of(path)
        unfinished.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(unfinished, flags, 0o600), "wb") as file:
            while data := read(CHUNK):
                file.write(data)
            file.flush()
            os.fchown(file.fileno(), os.geteuid(), os.getegid())
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
    except OSError as why:
        drop(path)
        raise refusal(path, why) from why
    return unfinished


def finish(path: Path) -> None:
    """Give the draft its name."""
    try:
        draft_of(path).replace(path)
        flush_folder(path.parent)
    except OSError as why:
        raise refusal(path, why) from why


def drop(path: Path) -> None:
    """Remove the draft, if there is one and if that is possible."""
    try:
        draft_of(path).unlink(missing_ok=True)
    except OSError:  # a read-only file system: then there is none of ours either
        return


def write_all(path: Path, data: bytes, mode: int) -> None:
    """Put a small file in place."""
    rest = [data]
    write_draft(path, lambda _: rest.pop() if rest else b"", mode)
    finish(path)


def copy(source: IO[bytes], path: Path, mode: int) -> None:
    """Put a copy in place."""
    write_draft(path, source.read, mode)
    finish(path)


def refusal(path: Path, why: OSError) -> Refused:
    """The error for a file that cannot be written: a full disk, a read-only one, something else at its place."""
    reason = why.strerror or str(why)
    if why.errno in (errno.ENOSPC, errno.EDQUOT):
        return Refused(f"no room for {path}", saw=reason, hint="make room on that file system, and run it again")
    return Refused(f"cannot write {path}", saw=reason)
