"""Move a file out of the way without losing it: nothing is deleted, and nothing moved before is overwritten."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from itertools import count
from pathlib import Path

from protokube.host.files import flush_folder

LONGEST = 200
"""Bytes of the original name to keep, of the 255 that a file system allows."""


def set_aside(path: Path, folder: Path, suffix: str) -> Path | None:
    """Move a file or a link to `folder/NAME.suffix`, or to that with a number; None if it was gone already."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = f"{os.fsdecode(os.fsencode(path.name)[:LONGEST])}.{suffix}"
    place = _reserve(folder, name)
    try:
        try:
            path.replace(place)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy_over(path, place, path.with_name(f".{name}"))
    except OSError as error:
        place.unlink(missing_ok=True)
        if isinstance(error, FileNotFoundError):
            return None
        raise
    flush_folder(folder)
    flush_folder(path.parent)
    return place


def _copy_over(path: Path, place: Path, hidden: Path) -> None:
    """Move to another file system. Rename to a dot file first: kubelet ignores it, so nothing changes it by name."""
    if os.path.lexists(hidden):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(hidden))
    path.rename(hidden)
    draft = place.with_name(f".{place.name}")
    try:
        shutil.copy2(hidden, draft, follow_symlinks=False)
        if stat.S_ISREG(draft.lstat().st_mode):
            with draft.open("rb") as copied:
                os.fsync(copied.fileno())
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)
    hidden.unlink()


def _reserve(folder: Path, name: str) -> Path:
    """Reserve an unused name with an empty file."""
    for number in count():
        place = folder / (f"{name}.{number}" if number else name)
        try:
            os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            continue
        return place
    raise AssertionError("unreachable")
