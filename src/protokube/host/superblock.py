"""Read the UUID of an ext4, mounted or not, to check that it is the file system that we made.

The device is opened by its number, since the mount table has only that, and names may change.
"""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SUPERBLOCK, MAGIC_AT, UUID_AT, LENGTH = 1024, 56, 104, 120
MAGIC = b"\x53\xef"


def ext4_uuid(number: tuple[int, int]) -> str | None:
    """None if there is no ext4 superblock, or it cannot be read."""
    try:
        with _node(number) as path:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                head = os.pread(descriptor, LENGTH, SUPERBLOCK)
            finally:
                os.close(descriptor)
    except OSError:
        return None
    if len(head) < LENGTH or head[MAGIC_AT : MAGIC_AT + 2] != MAGIC:
        return None
    return str(uuid.UUID(bytes=head[UUID_AT : UUID_AT + 16]))


@contextmanager
def _node(number: tuple[int, int]) -> Iterator[Path]:
    """A device node for the number; if there is none, a temporary one."""
    known = Path(f"/dev/block/{number[0]}:{number[1]}")
    if known.exists():
        yield known
        return
    made = Path(f"/dev/.protokube-{number[0]}-{number[1]}-{os.getpid()}")
    made.unlink(missing_ok=True)
    os.mknod(made, stat.S_IFBLK | 0o600, os.makedev(*number))
    try:
        yield made
    finally:
        made.unlink()
