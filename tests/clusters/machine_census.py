"""What there is of a cluster on this machine, found in /proc and /sys alone: no word of the code under test is taken.

A census is made while the cluster runs; afterwards everything in it has to be gone. `machine` counts all there is on
the machine, whoever it belongs to, for when nothing else runs.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from protokube.local.base.paths import Paths

KINDS = ("mnt", "net", "pid", "uts")
NAMED = Path("/run/netns")
SECONDS = 20.0
"""For what the kernel takes down behind the back of whoever asked."""

Process = tuple[int, int]
"""Its pid and when it began: a pid alone may be somebody else's later."""


@dataclass(frozen=True, slots=True)
class Census:
    """One cluster, as it was."""

    root: Path
    switch: str
    processes: frozenset[Process]
    """The kernel gives the number of a namespace to the next one, so whoever keeps one alive is what is counted."""

    @staticmethod
    def of(paths: Paths) -> Census:
        """Every process that is in a namespace of one of its hosts, or that names its folder, and all they have."""
        ours = {each: namespaces(each) for each, _ in all_processes() if is_in_folder(each, paths.root)}
        everybody = {each: namespaces(each[0]) for each in all_processes()}
        # what we held before and after was nobody else's meanwhile
        held = {space for each in ours for space in ours[each] & namespaces(each)}
        hosts = held - namespaces(os.getpid())
        if (NAMED / paths.switch).exists():
            hosts.add(f"net:[{(NAMED / paths.switch).stat().st_ino}]")
        found = frozenset(each for each, spaces in everybody.items() if each[0] in ours or spaces & hosts)
        return Census(paths.root, paths.switch, found)

    def left(self) -> list[str]:
        """What of it is still there, in words."""
        now, devices = frozenset(all_processes()), devices_under(self.root)
        told = [f"process {pid}: {command(pid)}" for pid, _ in self.processes & now]
        told += [f"process {pid} names the folder" for pid, _ in now if is_in_folder(pid, self.root)]
        told += [f"loop device {device}" for device in devices]
        told += [f"mounted by process {pid}: {line}" for pid, line in mount_lines() if self._is_ours(line, devices)]
        told += [f"network namespace {self.switch}"] * (NAMED / self.switch).exists()
        told += [f"folder {self.root}"] * self.root.exists()
        return told

    def nothing_is_left(self) -> None:
        end = time.monotonic() + SECONDS
        while (left := self.left()) and time.monotonic() < end:
            time.sleep(0.05)
        assert not left, "\n".join(left)

    def _is_ours(self, line: str, devices: set[str]) -> bool:
        return line.split(" ")[2] in devices or str(self.root) in line or f"{NAMED / self.switch} " in line


def machine() -> Mapping[str, frozenset[str]]:
    """All of this machine, by kind, in words: for comparing before with after."""
    return {
        "processes": frozenset(f"{pid} {command(pid)}" for pid, _ in all_processes() if not is_kernel(pid)),
        "namespaces": frozenset(space for pid, _ in all_processes() for space in namespaces(pid)),
        "named networks": frozenset(each.name for each in NAMED.glob("*")),
        "links": frozenset(name for _, name in socket.if_nameindex()),
        "loop devices": frozenset(f"{number} {file}" for number, file in bound_devices()),
        "mounts": frozenset(Path("/proc/self/mountinfo").read_text().splitlines()),
    }


def all_processes() -> Iterator[Process]:
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            state, *_ = fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if state != "Z":  # dead, and nobody has asked how yet
                yield int(folder.name), int(fields[19])


def namespaces(pid: int) -> set[str]:
    found = set()
    for kind in KINDS:
        with suppress(OSError):
            found.add(str(Path(f"/proc/{pid}/ns/{kind}").readlink()))
    return found


def is_in_folder(pid: int, root: Path) -> bool:
    """Whether it was started with the folder's name, or has a place in it: its output, or its /run."""
    name = os.fsencode(root)
    process = Path(f"/proc/{pid}")
    with suppress(OSError):
        if name in (process / "cmdline").read_bytes():
            return True
    for link in ("cwd", "fd/0", "fd/1", "fd/2"):
        with suppress(OSError):
            if str((process / link).readlink()).startswith(str(root)):
                return True
    with suppress(OSError):
        run = (process / "root/run").stat()
        return any(os.path.samestat(run, each.stat()) for each in root.glob("hosts/*/run"))
    return False


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return ""


def is_kernel(pid: int) -> bool:
    """Threads of the kernel come and go as they like."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1] == "2" or pid == 2
    except OSError:
        return True


def bound_devices() -> Iterator[tuple[str, str]]:
    for about in Path("/sys/block").glob("loop*"):
        with suppress(OSError):
            yield (about / "dev").read_text().strip(), (about / "loop/backing_file").read_text().strip()


def devices_under(root: Path) -> set[str]:
    """`7:3`, as mount tables name them."""
    return {number for number, file in bound_devices() if file.startswith(f"{root}/")}


def mount_lines() -> Iterator[tuple[int, str]]:
    """Every mount of every mount namespace, each once."""
    seen = set()
    for pid, _ in all_processes():
        with suppress(OSError):
            space = Path(f"/proc/{pid}/ns/mnt").readlink()
            if space not in seen:
                seen.add(space)
                yield from ((pid, line) for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines())
