"""Cgroups of one machine: one in every tree that this machine has, of version 1, 2 or both.

A kubelet with the cgroupfs driver makes /kubepods in each tree. Machines that shared a root there would remove each
other's pods; so each enters a cgroup of its own before systemd-nspawn starts, and sees that as the root.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

PREFIX = "pk-machine"
TREES = Path("/sys/fs/cgroup")
NAME = re.compile(rf"{PREFIX}-(\d+)-")
ENTER = 'for each in $CGROUPS; do echo 0 > "$each/cgroup.procs"; done; exec "$@"'
"""Move into cgroups, then become a command."""


def trees() -> list[Path]:
    """The roots of all trees."""
    return [each for each in (TREES, *sorted(TREES.iterdir())) if (each / "cgroup.procs").exists()]


def make(name: str) -> list[Path]:
    """Make the cgroups; what earlier tests left is removed first."""
    sweep()
    made = []
    for tree in trees():
        cgroup = tree / f"{PREFIX}-{os.getpid()}-{name}"
        cgroup.mkdir()
        for setting in ("cpuset.cpus", "cpuset.mems"):  # version 1 lets nobody in before they are set
            if (cgroup / setting).exists() and not (cgroup / setting).read_text().strip():
                (cgroup / setting).write_text((tree / setting).read_text())
        if (cgroup / "cgroup.clone_children").exists():
            (cgroup / "cgroup.clone_children").write_text("1")
        made.append(cgroup)
    return made


def sweep() -> None:
    """Remove empty cgroups of tests that are gone: for what was killed with its own cleaner."""
    for tree in trees():
        for each in tree.glob(f"{PREFIX}-*"):
            found = NAME.match(each.name)
            if found and not Path("/proc", found[1]).exists():
                remove(each)


def remove(cgroup: Path) -> None:
    for folder, _, _ in os.walk(cgroup, topdown=False):
        try:
            Path(folder).rmdir()
        except OSError:  # in use after all
            return
