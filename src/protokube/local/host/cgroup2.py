"""Cgroup v2 of a host with a real container runtime: one group, which is the root of the hierarchy seen from inside.

In version 2, a group with processes cannot pass controllers on to groups below it. So the host's group is a child of
the topmost group, not of the one we run in; and its processes are in a leaf of it, so that a kubelet can create pods
beside them. A process that comes later can no longer join the host's group and unshare there: the namespace is pinned
to a file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from protokube.errors import Refused
from protokube.local.base import syscalls
from protokube.local.base.syscalls import CLONE_NEWCGROUP, MNT_DETACH, MS_NODEV, MS_NOEXEC, MS_NOSUID
from protokube.local.host.cgroup_facts import NEEDED_V2, USED_V2, listed

INSIDE = Path("/sys/fs/cgroup")
NAMESPACE = Path("/run/protokube/cgroup.namespace")
"""In a host: its cgroup namespace, pinned once its groups are complete."""
LEAF = "init"
FLAGS = MS_NOSUID | MS_NODEV | MS_NOEXEC
PROCESSES, CONTROLLERS, ENABLED = "cgroup.procs", "cgroup.controllers", "cgroup.subtree_control"


def enter(parent: str, host: str) -> None:
    """Join the host's leaf and its cgroup namespace; create both if this is the first process. Not concurrently."""
    if not os.path.ismount(NAMESPACE):
        _make(parent, host)
        return
    # Joined first: from inside the namespace, the kernel does not let a process in from a group that is outside.
    _join(INSIDE / LEAF)
    with NAMESPACE.open("rb") as pinned:
        syscalls.setns(pinned.fileno(), CLONE_NEWCGROUP)


def _make(parent: str, host: str) -> None:
    mount()
    above = INSIDE / parent
    group = above / host
    pass_on(INSIDE)
    above.mkdir(exist_ok=True)
    pass_on(above)
    group.mkdir(exist_ok=True)
    _take_back(group)  # passed on by an attempt that was killed
    _join(group)
    syscalls.unshare(CLONE_NEWCGROUP)
    mount()
    (INSIDE / LEAF).mkdir(exist_ok=True)
    _join(INSIDE / LEAF)
    pass_on(INSIDE)
    NAMESPACE.touch()
    syscalls.bind("/proc/self/ns/cgroup", str(NAMESPACE))


def mount() -> None:
    """Anew: a mount shows the hierarchy of the cgroup namespace in which it was made."""
    while os.path.ismount(INSIDE):
        syscalls.unmount(str(INSIDE), MNT_DETACH)
    syscalls.mount("cgroup2", str(INSIDE), "cgroup2", FLAGS)


def _join(group: Path) -> None:
    (group / PROCESSES).write_text(str(os.getpid()))


def pass_on(group: Path) -> None:
    """Enable the controllers that hosts use for the groups below this one. Refused if a needed one cannot be."""
    present, enabled = _words(group / CONTROLLERS), _words(group / ENABLED)
    for name in sorted((NEEDED_V2 | (USED_V2 & present)) - enabled):
        try:
            (group / ENABLED).write_text(f"+{name}")
        except OSError as why:
            if name in NEEDED_V2:
                raise Refused(
                    f"control groups of version 2 do not pass {name} on to hosts",
                    saw=f"{group}: {why.strerror}",
                    want=f"{listed(NEEDED_V2)} in {ENABLED}",
                ) from why


def _take_back(group: Path) -> None:
    for name in sorted(_words(group / ENABLED)):
        with suppress(OSError):  # a group below still has it; joining fails then, and tells
            (group / ENABLED).write_text(f"-{name}")


def _words(file: Path) -> frozenset[str]:
    return frozenset(file.read_text().split())
