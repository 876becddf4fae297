"""Create files, folders and sockets that only their owner may open.

The mode goes into the call that creates: with a mode set afterwards anybody could open the file in between, and would
keep it open. What an older version left open is closed when it is opened again.

Used by the first process of a host, so it imports little.
"""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

FILE, FOLDER = 0o600, 0o700
OTHERS = 0o077


def make_folder(path: Path) -> None:
    """A folder that is there is closed as well."""
    path.mkdir(mode=FOLDER, parents=True, exist_ok=True)
    close(path)


def open_file(path: Path, flags: int) -> int:
    """A handle of a file that is created if it is not there; `flags` are those of open(2)."""
    handle = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, FILE)
    if os.fstat(handle).st_mode & OTHERS:
        os.fchmod(handle, FILE)
    return handle


def bind(listener: socket.socket, address: str) -> None:
    """Linux gives the file of a socket the mode that the socket has when it is bound."""
    os.fchmod(listener.fileno(), FILE)
    listener.bind(address)


def close(path: Path) -> bool:
    """Take all rights of group and others away; return whether there were any. A symbolic link is left alone."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode) or not mode & OTHERS:
        return False
    path.chmod(stat.S_IMODE(mode) & ~OTHERS)
    return True
