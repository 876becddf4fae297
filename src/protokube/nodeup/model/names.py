"""The name of the machine, and a record of the cluster that it belongs to, which later runs compare."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from protokube.launch.setups.values import MachineSetup
from protokube.nodeup.facts import Facts, PackageManager
from protokube.nodeup.model import packages
from protokube.nodeup.values import Command, File, Task

HOST_NAME = "/etc/hostname"
RECORD = "/etc/protokube/machine.json"
"""`cluster` and `nodeName` become those of the facts of the next run."""
LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
NODE_NAME = re.compile(rf"{LABEL}(\.{LABEL})*")
LONGEST = 63
"""The node name is also a label of the Node."""


def name_tasks(setup: MachineSetup, facts: Facts) -> Iterator[Task]:
    record = {
        "cluster": setup.cluster, "group": setup.group, "nodeName": setup.node_name, "role": setup.role,
    }  # fmt: skip
    yield File(path=RECORD, content=(json.dumps(record, indent=2) + "\n").encode())
    if not setup.node_name:
        return
    written = File(path=HOST_NAME, content=f"{setup.node_name}\n".encode())
    # Debian always has the program, Fedora's relatives have it as a package.
    brings = (packages.base(setup, facts).key,) if facts.package_manager is PackageManager.DNF else ()
    yield written
    if not facts.image:
        yield Command(
            name="host name",
            check=("sh", "-c", 'test "$(hostname)" = "$1"', "sh", setup.node_name),
            run=("hostname", setup.node_name),
            after=(written.key, *brings),
        )


def is_valid(name: str) -> bool:
    return len(name) <= LONGEST and NODE_NAME.fullmatch(name) is not None
