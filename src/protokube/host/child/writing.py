"""Whether a mounted file system still takes writes: a few bytes are written and flushed.

The mount table does not tell it on every kernel, and a disk that hangs tells nothing at all: then this process hangs,
and its deadline is the answer. The file stays, so that the next test needs no room.
"""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any

from protokube.host.child.claim import Refusal, text

FILE = ".protokube-write-test"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
NOFOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC


def test(point: Path, number: tuple[int, int]) -> dict[str, Any]:
    """Refusal if something else is mounted there."""
    try:
        write(point, number)
    except OSError as error:
        return {"unwritable": os.strerror(error.errno or 0).lower(), "full": error.errno in NO_ROOM}
    return {"done": True}


def write(point: Path, number: tuple[int, int]) -> None:
    folder = os.open(point, os.O_RDONLY | os.O_DIRECTORY | NOFOLLOW)
    try:
        device = os.fstat(folder).st_dev
        if (os.major(device), os.minor(device)) != number:
            raise Refusal(f"{text(number)} is not mounted at {point}")
        file = os.open(FILE, os.O_WRONLY | os.O_CREAT | NOFOLLOW, 0o600, dir_fd=folder)
        try:
            os.pwrite(file, f"{time.time_ns()}\n".encode(), 0)
            os.fsync(file)
        finally:
            os.close(file)
    finally:
        os.close(folder)
