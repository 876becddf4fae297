"""Cgroups of a host with a real container runtime: a subtree of ours, which is the whole hierarchy seen from inside.

The first unit that needs them creates them. With cgroup v1, they are below the cgroup of the local cloud, so its limits
apply to the hosts, too; with cgroup v2 (`cgroup2`), they are not. A cgroup outlives its processes, so `down` finds
them by name.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from protokube.errors import Refused
from protokube.local.base import syscalls
from protokube.local.base.syscalls import MNT_DETACH, MS_NODEV, MS_NOEXEC, MS_NOSUID
from protokube.local.host import cgroup2, cgroup_facts
from protokube.local.host.cgroup_facts import Facts, Hierarchy, read, read_mounts

INSIDE = Path("/sys/fs/cgroup")
LOCK = Path("/run/protokube/cgroups.lock")
MADE = ".made"
"""In INSIDE, once the hierarchy is complete."""
FLAGS = MS_NOSUID | MS_NODEV | MS_NOEXEC
PER_CPU = ("cpuset.cpus", "cpuset.mems")
"""Empty in a new cpuset cgroup; no process can join before they are set."""
PATIENCE = 5.0


def name(switch: str) -> str:
    """The parent cgroup of all hosts of the cloud with this switch."""
    return f"protokube-{switch}"


def enter(parent: str, host: str) -> None:
    """Runs inside a host: join its cgroups in a new cgroup namespace; create them if this is the first process."""
    with _locked():
        facts = _observe_inside()
        if reason := cgroup_facts.lacking(facts):
            raise Refused(
                "a host cannot run a real kubelet here", saw=reason, hint="use the built-in runner of static pods"
            )
        if cgroup_facts.is_unified(facts):
            cgroup2.enter(parent, host)
        else:
            _enter_separate(read(facts.own), parent, host)


def _observe_inside() -> Facts:
    """A new host has no cgroups mounted yet."""
    facts = cgroup_facts.observe()
    if cgroup_facts.lacking(facts) and facts.top is None:
        with suppress(OSError):  # a kernel without cgroup v2: what is lacking is the reason
            cgroup2.mount()
        facts = cgroup_facts.observe()
    return facts


def _enter_separate(trees: Sequence[Hierarchy], parent: str, host: str) -> None:
    if not (INSIDE / MADE).exists():
        _make(trees, parent, host)
    else:
        for tree in trees:
            (INSIDE / tree.folder / "cgroup.procs").write_text(str(os.getpid()))
        syscalls.unshare(syscalls.CLONE_NEWCGROUP)


@contextmanager
def _locked() -> Iterator[None]:
    handle = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _make(trees: Sequence[Hierarchy], parent: str, host: str) -> None:
    """Mount the hierarchies to create and join our cgroups; mount them again in a new cgroup namespace."""
    while os.path.ismount(INSIDE):  # left by an attempt that was killed
        syscalls.unmount(str(INSIDE), MNT_DETACH)
    syscalls.mount("cgroup", str(INSIDE), "tmpfs", FLAGS, "mode=755,size=1m")
    for tree in trees:
        place = INSIDE / tree.folder
        place.mkdir()
        _mount(tree)
        group = place / tree.group.lstrip("/") / parent / host
        for folder in (group.parent, group):
            folder.mkdir(exist_ok=True)
            for file in PER_CPU if "cpuset" in tree.controllers else ():
                (folder / file).write_text((folder.parent / file).read_text())
        (group / "cgroup.procs").write_text(str(os.getpid()))
        syscalls.unmount(str(place), MNT_DETACH)
    syscalls.unshare(syscalls.CLONE_NEWCGROUP)
    for tree in trees:
        _mount(tree)
        for controller in tree.controllers if len(tree.controllers) > 1 else ():
            (INSIDE / controller).symlink_to(tree.folder)
    (INSIDE / MADE).touch()


def _mount(tree: Hierarchy) -> None:
    kind, options = tree.mount
    syscalls.mount(kind, str(INSIDE / tree.folder), kind, FLAGS, options)


def find(parent: str) -> Sequence[Path]:
    """Every cgroup of this name on this machine, in any hierarchy and at any depth."""
    found: list[Path] = []
    table = read_mounts(Path("/proc/self/mountinfo").read_text())
    for root in [mount.point for mount in table if mount.kind in ("cgroup", "cgroup2")]:
        for folder, inside, _ in os.walk(root):
            if parent in inside:
                found.append(Path(folder) / parent)
    return sorted(found)


def remove(groups: Sequence[Path], patience: float = PATIENCE) -> Sequence[Path]:
    """Remove cgroups with their children, except those with processes. Return the removed ones."""
    gone: list[Path] = []
    end = time.monotonic() + patience
    for group in groups:
        while not (went := _remove(group)) and time.monotonic() < end:
            time.sleep(0.02)
        gone += [group] * went
    return gone


def sweep(parent: str, dead: Collection[str]) -> None:
    """Remove cgroups of dead hosts, without waiting for those still busy."""
    remove([group / host for group in find(parent) for host in dead if (group / host).is_dir()], patience=0)


def _remove(group: Path) -> bool:
    """Remove innermost first; return False while one of them still has processes."""
    for folder, _, _ in os.walk(group, topdown=False):
        try:
            with suppress(FileNotFoundError):
                Path(folder).rmdir()
        except OSError as busy:
            if busy.errno in (errno.EBUSY, errno.ENOTEMPTY):
                return False
            raise
    return True
