"""Check that enough inotify instances are left for hosts with a real kubelet.

Every program that reloads its certificates uses an inotify instance, and the kernel limits instances per user, on
Debian to 128. All hosts of the local cloud run as one user: two clusters of three masters reach the limit, and then a
kubelet or an API server does not start, with the error `too many open files`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from protokube.errors import Problem

LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
INSTANCE = "anon_inode:inotify"
PER_HOST = 20
"""Instances that one master with a kubelet uses: counted on Kubernetes 1.36."""
ENOUGH = 1024


def shortage(hosts: int, proc: Path = Path("/proc"), limit: Path = LIMIT) -> Problem | None:
    """A warning for the user if this many more hosts would reach the limit."""
    try:
        allowed = int(limit.read_text())
    except (OSError, ValueError):  # a kernel without the limit
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
