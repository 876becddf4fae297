"""The user's own files. On a master the agent keeps them: there nodeup writes only those that are missing."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator

from protokube.launch.setups.values import MachineSetup
from protokube.nodeup.facts import Facts
from protokube.nodeup.values import File, Task

OTHERS = 0o007


def file_tasks(setup: MachineSetup, _facts: Facts) -> Iterator[Task]:
    for each in setup.files:
        yield File(
            path=each.path,
            content=b64decode(each.content),
            mode=each.mode,
            secret=not each.mode & OTHERS,
            keep=setup.is_master,
        )


def keys(setup: MachineSetup, facts: Facts) -> tuple[str, ...]:
    return tuple(each.key for each in file_tasks(setup, facts))
