"""Downloads: what the setup lists, for this kind of machine; and programs that have no concern of their own."""

from __future__ import annotations

from collections.abc import Iterator

from protokube.launch.setups.values import MachineSetup
from protokube.nodeup.facts import Facts
from protokube.nodeup.values import Asset, Installed, Task


def task(setup: MachineSetup, facts: Facts, name: str) -> Asset | None:
    """None if there is none for this kind of machine."""
    found = setup.asset(name, facts.processor)
    return Asset(name=found.name, sha256=found.sha256, urls=found.urls, size=found.size) if found else None


def program_tasks(setup: MachineSetup, facts: Facts) -> Iterator[Task]:
    for name in sorted({each.asset for each in setup.programs}):
        if asset := task(setup, facts, name):
            yield asset
            for each in setup.programs:
                if each.asset == name:
                    yield Installed(asset=name, path=each.path, member=each.member, mode=each.mode, after=(asset.key,))
