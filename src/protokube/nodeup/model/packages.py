"""Packages of the distribution. The user's own are a task of their own: a wrong name there stops nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from protokube.launch.setups.values import MachineSetup
from protokube.nodeup.distribution import names
from protokube.nodeup.facts import Facts
from protokube.nodeup.model import cni, runtime, timesync, updates
from protokube.nodeup.values import Packages, Task


def package_tasks(setup: MachineSetup, facts: Facts) -> Iterator[Task]:
    ours = base(setup, facts)
    yield ours
    known = {*ours.names, *timesync.packages(setup, facts), *updates.packages(setup, facts)}
    if more := [each for each in setup.packages if each not in known]:
        stated = tuple(dict.fromkeys(each for each in more if "=" in each))
        yield Packages(names=tuple(dict.fromkeys(more)), purpose="of the spec", held=stated)


def base(setup: MachineSetup, facts: Facts) -> Packages:
    """Everything of ours at once: one run of the package manager. Of these only the runtime is held."""
    words = names(facts)
    held = (*runtime.packages(setup, facts), *cni.packages(setup, facts))
    wanted = [*words.base, *held]
    if any(each.file_system == "xfs" for each in setup.mounts):
        wanted.append(words.xfs)
    return Packages(names=tuple(dict.fromkeys(wanted)), purpose="of a node", held=held)
