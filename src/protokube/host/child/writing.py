"""Test whether a mounted file system is writable: write and flush a few bytes.

Not every kernel shows a failed file system in the mount table. If the disk hangs, this process hangs, and its deadline
reports that. The file stays, so that the next test needs no free space.
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
