"""One nodeup at a time for one root: a lock of the kernel, which ends with its process, however that ends.

The lock lies below /run of the machine that runs nodeup, also for the root of an image: nothing of it stays there.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protokube.errors import TryLater

RUN = Path("/run/protokube/nodeup")


def place_for(root: Path, run: Path = RUN) -> Path:
    """The folder of one root: its lock, and what a killed run leaves for the next one."""
    if root == Path("/"):
        return run
    return run / "roots" / hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:16]


@contextmanager
def locked(place: Path, what: str) -> Iterator[None]:
    """Hold the lock; TryLater says who has it. `what`: the command that we are, for others."""
    place.mkdir(parents=True, exist_ok=True)
    file = place / "lock"
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            raise TryLater(
                "another nodeup is at work on this machine", saw=_holder(handle), hint="wait until it has ended"
            ) from taken
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps({"pid": os.getpid(), "command": what}).encode(), 0)
        yield
    finally:
        os.close(handle)


def _holder(handle: int) -> str:
    """Who wrote itself into the lock; between locking and writing, nobody has yet."""
    try:
        data = json.loads(os.pread(handle, 4096, 0))
        return f"process {int(data['pid'])}: {data['command']}"
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return "a process that has just begun"
