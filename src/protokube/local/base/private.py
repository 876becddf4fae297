"""Create files, folders and sockets that only their owner may open.

The mode is passed to the call that creates: with a later chmod another user could open the file in between, and keep
it open. Files that an older version created too open are fixed when they are opened again.

Used by the init of a host, so it imports little.
"""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

FILE, FOLDER = 0o600, 0o700
OTHERS = 0o077


def make_folder(path: Path) -> None:
    """Create a private folder; an existing one is made private, too."""
    path.mkdir(mode=FOLDER, parents=True, exist_ok=True)
    close(path)


def open_file(path: Path, flags: int) -> int:
    """Open a private file, creating it if needed; `flags` are those of open(2)."""
    handle = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, FILE)
    if os.fstat(handle).st_mode & OTHERS:
        os.fchmod(handle, FILE)
    return handle


def bind(listener: socket.socket, address: str) -> None:
    """Bind a private Unix socket: its file gets the mode that the socket has when it is bound."""
    os.fchmod(listener.fileno(), FILE)
    listener.bind(address)


def close(path: Path) -> bool:
    """Remove all access of group and others; return whether there was any. Symbolic links are left alone."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode) or not mode & OTHERS:
        return False
    path.chmod(stat.S_IMODE(mode) & ~OTHERS)
    return True
