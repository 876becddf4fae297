"""Wait for other programs that work on the packages, and name them.

apt and dpkg lock files with fcntl, and the kernel says who holds such a lock. Without waiting, the first boot of a
cloud image often fails: its own unattended upgrades run at that time.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

from protokube.errors import TryLater
from protokube.nodeup.machine import Machine, Say

LOCKS = (
    "/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/lib/apt/lists/lock", "/var/cache/apt/archives/lock",
)  # fmt: skip
SECONDS = 600.0
PAUSE = 0.25
FLOCK = "hhqqi4x"
"""struct flock of a 64-bit kernel: type, whence, start, length, pid."""


def holder(path: Path) -> str | None:
    """Who holds the lock of a file, as `apt-get (pid 12)`; None if nobody does."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        answer = fcntl.fcntl(handle, fcntl.F_GETLK, struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    finally:
        os.close(handle)
    kind, _, _, _, pid = struct.unpack(FLOCK, answer)
    return None if kind == fcntl.F_UNLCK else called(pid)


def called(pid: int) -> str:
    if pid <= 0:
        return "a process of another container"
    try:
        return f"{Path(f'/proc/{pid}/comm').read_text().strip()} (pid {pid})"
    except OSError:
        return f"a process that has just ended (pid {pid})"


def holders(machine: Machine) -> tuple[str, ...]:
    found = (holder(machine.path(each)) for each in LOCKS)
    return tuple(dict.fromkeys(each for each in found if each))


def wait(machine: Machine, say: Say, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
    """Return once nobody holds any of the locks. TryLater after `seconds`, naming who does."""
    until, reported = clock() + seconds, ""
    while found := ", ".join(holders(machine)):
        if found != reported:
            say(f"waiting for {found} to release the lock of the package manager")
            reported = found
        if clock() >= until:
            raise TryLater(
                f"another program has worked on the packages for {seconds:.0f} s",
                saw=f"the lock of dpkg is held by {found}",
                hint="see what it waits for; the next run goes on here",
            )
        time.sleep(PAUSE)
