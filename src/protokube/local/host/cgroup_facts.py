"""Whether a host of this machine can run a real kubelet, by the machine's control groups and namespaces.

`observe` reads; the rest is pure. Nothing here changes anything, so `up` can ask before it decides.

Version 1 is preferred where it has every controller, because a controller that is bound to it is missing in version 2.
In version 2 a group that has processes cannot pass controllers on to groups below it; only the root of the machine's
hierarchy can. So our groups are children of the topmost group that is visible, not of the one we run in.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc/self")
STATE = Path("/var/lib/protokube")
NEEDED_V1 = frozenset({"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "pids"})
NEEDED_V2 = frozenset({"cpu", "cpuset", "memory", "pids"})
"""What a kubelet and runc need; processor time is always counted, devices and freezing are no controllers."""
USED_V2 = frozenset({"hugetlb", "io"})
"""Passed on where the machine has them."""
EVERYONE = ["0", "0", "4294967295"]
"""The map of user ids outside of any user namespace."""
NO_UPPER = frozenset({"overlay", "aufs", "9p", "nfs", "nfs4", "cifs", "vfat", "exfat"})
"""File systems that the kernel does not accept as the upper folder of an overlay: containers could not be unpacked."""


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


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of a mountinfo file."""

    root: str
    """The folder of the file system that is mounted."""
    point: str
    options: frozenset[str]
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Top:
    """The topmost visible group of cgroup v2."""

    controllers: frozenset[str]
    enabled: frozenset[str]
    """Controllers of the groups below it."""
    machine: bool
    """Whether it is the root of the machine's hierarchy, and not the group of a container."""
    busy: bool
    """Whether it has processes of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What decides whether a host can run a kubelet."""

    own: str
    """/proc/self/cgroup."""
    mounts: str
    """/proc/self/mountinfo."""
    users: str
    """/proc/self/uid_map."""
    top: Top | None
    """None if cgroup v2 is not mounted."""
    state: str = str(STATE)
    """The folder of the hosts, without symbolic links."""


def observe(state: Path = STATE, proc: Path = PROC) -> Facts:
    """`state` may not exist yet."""
    mounts = _read(proc / "mountinfo")
    unified = unified_mount(read_mounts(mounts))
    return Facts(
        own=_read(proc / "cgroup"),
        mounts=mounts,
        users=_read(proc / "uid_map"),
        top=_look(Path(unified.point)) if unified else None,
        state=str(state.resolve()),
    )


def _look(top: Path) -> Top:
    return Top(
        controllers=frozenset(_read(top / "cgroup.controllers").split()),
        enabled=frozenset(_read(top / "cgroup.subtree_control").split()),
        machine=not (top / "cgroup.type").exists(),
        busy=bool(_read(top / "cgroup.procs").split()),
    )


def _read(file: Path) -> str:
    """Empty if it cannot be read: sandboxes without control groups lack these files."""
    try:
        return os.fsdecode(file.read_bytes())
    except OSError:
        return ""


def read(text: str) -> Sequence[Hierarchy]:
    """Parse /proc/self/cgroup."""
    rows = [line.split(":", 2) for line in text.splitlines()]
    return [Hierarchy(tuple(controllers.split(",")) if controllers else (), group) for _, controllers, group in rows]


def read_mounts(text: str) -> Sequence[Mount]:
    """Parse a mountinfo file."""
    found: list[Mount] = []
    for line in text.splitlines():
        fields, _, rest = line.partition(" - ")
        _, _, _, root, point, options, *_ = fields.split()
        found.append(Mount(_unescape(root), _unescape(point), frozenset(options.split(",")), rest.split()[0]))
    return found


def _unescape(text: str) -> str:
    """Blanks are written as octal numbers."""
    for written, meant in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(written, meant)
    return text


def unified_mount(mounts: Sequence[Mount]) -> Mount | None:
    """Where cgroup v2 is mounted: where programs look for it, if it is mounted more than once."""
    found = [mount for mount in mounts if mount.kind == "cgroup2"]
    return min(found, key=lambda mount: (not mount.point.startswith("/sys/fs/cgroup"), mount.point), default=None)


def why_not(facts: Facts) -> str:
    """The reason why no host of this machine can run a real kubelet, in one sentence; empty if one can."""
    if facts.users.split() not in ([], EVERYONE):
        return "this is a user namespace, in which a kubelet cannot do its work"
    if reason := lacking(facts):
        return reason
    kind = _file_system(facts)
    if kind in NO_UPPER:
        return f"{facts.state} is on a file system of type {kind}, on which containers cannot be unpacked"
    return ""


def is_unified(facts: Facts) -> bool:
    """Whether hosts use version 2. Version 1 is preferred: a controller that is bound to it is missing in version 2."""
    return bool(_missing_v1(facts)) and facts.top is not None


def lacking(facts: Facts) -> str:
    """The reason why this machine's control groups are not enough, in one sentence; empty if they are."""
    top = facts.top
    if not (missing := _missing_v1(facts)):
        return ""
    if top is None:
        return f"there are no control groups of version 2, and those of version 1 lack {listed(missing)}"
    bound = {controller for tree in read(facts.own) for controller in tree.controllers} & NEEDED_V2
    if missing := NEEDED_V2 - top.controllers:
        why = f", of which version 1 has {listed(bound & missing)}" if bound & missing else ""
        return f"control groups of version 2 lack {listed(missing)} here{why}"
    if top.busy and not top.machine and (closed := NEEDED_V2 - top.enabled):
        return (
            f"the topmost control group of this container has processes, so it cannot pass {listed(closed)} on to "
            "groups of hosts"
        )
    return ""


def _missing_v1(facts: Facts) -> frozenset[str]:
    return NEEDED_V1 - {controller for tree in read(facts.own) for controller in tree.controllers}


def _file_system(facts: Facts) -> str:
    """The type of the file system that the state is on: that of the last mount at the longest path to it."""
    around = [each for each in read_mounts(facts.mounts) if Path(facts.state).is_relative_to(each.point)]
    return max(reversed(around), key=lambda each: len(Path(each.point).parts)).kind if around else ""


def listed(names: Collection[str]) -> str:
    """Names in a sentence."""
    *others, last = sorted(names)
    return f"{', '.join(others)} and {last}" if others else last
