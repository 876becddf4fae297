"""Log files of programs that know nothing of rotation: appended to, and cut when they have grown."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

MOST = 16 << 20
"""Bytes; twice that is kept in all."""


def open_log(path: Path) -> int:
    """A handle for a program's output. It appends, so that a log cut under the program goes on from its new end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)


def trim(path: Path, most: int = MOST) -> None:
    """Keep a log that has grown beyond `most` beside it, and start it anew; lines of that moment may be lost."""
    with suppress(OSError):  # not written yet, or the disk is full
        if path.stat().st_size > most:
            with path.open("rb") as old, path.with_name(f"{path.name}.1").open("wb") as kept:
                while os.sendfile(kept.fileno(), old.fileno(), None, most):
                    pass
            os.truncate(path, 0)
