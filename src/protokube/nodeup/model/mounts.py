"""Disks of the user's, mounted before anything writes below them."""

from __future__ import annotations

from collections.abc import Iterator

from protokube.launch.setups.values import MachineSetup
from protokube.nodeup.facts import Facts
from protokube.nodeup.values import Mount, Task

FORMATTED = "ext4"
"""The only file system that nodeup makes; others are mounted if they are there."""


def mount_tasks(setup: MachineSetup, _facts: Facts) -> Iterator[Task]:
    for each in setup.mounts:
        yield Mount(
            device=each.device,
            path=each.path,
            file_system=each.file_system,
            options=each.options,
            format=each.file_system == FORMATTED,
            format_options=each.format_options,
        )


def keys_above(path: str, setup: MachineSetup, facts: Facts) -> tuple[str, ...]:
    """Those of disks that hold a path, or are mounted there."""
    mounted = (each for each in mount_tasks(setup, facts) if isinstance(each, Mount))
    return tuple(each.key for each in mounted if f"{path}/".startswith(f"{each.path}/"))


def keys(setup: MachineSetup, facts: Facts) -> tuple[str, ...]:
    return tuple(each.key for each in mount_tasks(setup, facts))
