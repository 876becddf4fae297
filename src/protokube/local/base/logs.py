"""Log files of programs that know nothing of rotation: appended to, and cut when they have grown.

A program may log what it was given, so its log is closed to everybody else.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from protokube.local.base import private

MOST = 16 << 20
"""Bytes; twice that is kept in all."""


def open_log(path: Path) -> int:
    """A handle for a program's output. It appends, so that a log cut under the program goes on from its new end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return private.open_file(path, os.O_WRONLY | os.O_APPEND)


def trim(path: Path, most: int = MOST) -> None:
    """Keep a log that has grown beyond `most` beside it, and start it anew; lines of that moment may be lost."""
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
