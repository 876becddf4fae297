"""Cgroups of a host with a real container runtime: a subtree of ours, which is the whole hierarchy seen from inside.

The first unit that needs them creates them below the cgroup of the local cloud, so its limits apply to the hosts, too.
A cgroup outlives its processes, so `down` finds them by name.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from protokube.errors import Refused
from protokube.local.base import syscalls
from protokube.local.base.syscalls import MNT_DETACH, MS_NODEV, MS_NOEXEC, MS_NOSUID

INSIDE = Path("/sys/fs/cgroup")
LOCK = Path("/run/protokube/cgroups.lock")
MADE = ".made"
"""In INSIDE, once the hierarchy is complete."""
FLAGS = MS_NOSUID | MS_NODEV | MS_NOEXEC
NEEDED = frozenset({"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "pids"})
PER_CPU = ("cpuset.cpus", "cpuset.mems")
"""Empty in a new cpuset cgroup; no process can join before they are set."""
PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One cgroup hierarchy, and our own cgroup in it."""

    controllers: tuple[str, ...]
    """Empty for cgroup v2; `name=systemd` for a hierarchy without controllers."""
    group: str

    @property
    def folder(self) -> str:
        return ",".join(self.controllers).removeprefix("name=") or "unified"

    @property
    def mount(self) -> tuple[str, str]:
        """File system type and mount options."""
        if not self.controllers:
            return "cgroup2", ""
        named = ["none"] if self.controllers[0].startswith("name=") else []
        return "cgroup", ",".join([*named, *self.controllers])


def read(text: str) -> Sequence[Hierarchy]:
    """Parse /proc/self/cgroup."""
    rows = [line.split(":", 2) for line in text.splitlines()]
    return [Hierarchy(tuple(controllers.split(",")) if controllers else (), group) for _, controllers, group in rows]


def name(switch: str) -> str:
    """The parent cgroup of all hosts of the cloud with this switch."""
    return f"protokube-{switch}"


def enter(parent: str, host: str) -> None:
    """Runs inside a host: join its cgroups in a new cgroup namespace; create them if this is the first process."""
    trees = read(Path("/proc/self/cgroup").read_text())
    if lacking := NEEDED - {controller for tree in trees for controller in tree.controllers}:
        raise Refused(
            "a real kubelet in a host needs control groups of version 1",
            saw=f"no {', '.join(sorted(lacking))} of that version",
            hint="boot with systemd.unified_cgroup_hierarchy=0, or use the built-in runner of static pods",
        )
    with _locked():
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
    for root in _mounted(Path("/proc/self/mountinfo").read_text()):
        for folder, inside, _ in os.walk(root):
            if parent in inside:
                found.append(Path(folder) / parent)
    return sorted(found)


def _mounted(table: str) -> Sequence[str]:
    return [line.split()[4] for line in table.splitlines() if re.search(r" - cgroup2? ", line)]


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
