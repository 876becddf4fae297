"""Log files of programs without log rotation: append, and truncate when too large.

A program may log secrets from its arguments, so its log is private.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from protokube.local.base import private

MOST = 16 << 20
"""Bytes per file; the log and one rotated copy are kept."""


def open_log(path: Path) -> int:
    """A file descriptor for a program's output. With O_APPEND, a log truncated meanwhile goes on at its new end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return private.open_file(path, os.O_WRONLY | os.O_APPEND)


def trim(path: Path, most: int = MOST) -> None:
    """Copy a log larger than `most` to NAME.1, and truncate it; lines written meanwhile may be lost."""
    with suppress(OSError):  # not written yet, or the disk is full
        if path.stat().st_size > most:
            kept = private.open_file(path.with_name(f"{path.name}.1"), os.O_WRONLY | os.O_TRUNC)
            try:
                with path.open("rb") as old:
                    while os.sendfile(kept, old.fileno(), None, most):
                        pass
            finally:
                os.close(kept)
            os.truncate(path, 0)
