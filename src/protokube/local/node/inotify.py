"""Whether the kernel lets hosts with a real kubelet watch all the files that they want to.

Every program that reloads its certificates has the kernel watch them, and the kernel gives each user so many of these
watches at a time, on Debian 128. Hosts of the local cloud are processes of one user: two clusters of three masters use
them up, and then a kubelet or an API server does not start, and says `too many open files`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from protokube.errors import Problem

LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
INSTANCE = "anon_inode:inotify"
PER_HOST = 20
"""What the programs of one master that is a node have: counted on Kubernetes 1.36."""
ENOUGH = 1024


def shortage(hosts: int, proc: Path = Path("/proc"), limit: Path = LIMIT) -> Problem | None:
    """What to tell the user before that many hosts start, if they would not get what they need."""
    try:
        allowed = int(limit.read_text())
    except (OSError, ValueError):  # a kernel that does not count them
        return None
    return judge(allowed, used(proc), hosts)


def judge(allowed: int, used: int, hosts: int) -> Problem | None:
    """Pure."""
    if allowed - used >= hosts * PER_HOST:
        return None
    return Problem(
        path="--kubelet",
        message=f"the kernel lets one user have {allowed} inotify instances, and {used} are in use; {hosts} hosts need "
        f"about {hosts * PER_HOST}. Some of their programs may not start: too many open files",
        hint=f"sysctl fs.inotify.max_user_instances={max(ENOUGH, allowed * 2)}, or take another cluster down first",
    )


def used(proc: Path) -> int:
    """Instances that processes of this user have now."""
    count = 0
    for process in proc.glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            if process.stat().st_uid == os.geteuid():
                count += sum(_is_instance(each) for each in (process / "fd").iterdir())
    return count


def _is_instance(handle: Path) -> bool:
    try:
        return str(handle.readlink()) == INSTANCE
    except OSError:
        return False
