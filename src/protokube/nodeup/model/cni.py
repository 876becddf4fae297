"""Network plugins in /opt/cni/bin, where the pods of network add-ons also put theirs: from an archive of our choice, or
linked from the distribution's package.
"""

from __future__ import annotations

from collections.abc import Iterator

from protokube.launch.setups.values import CNI_PLUGINS, MachineSetup
from protokube.nodeup.distribution import available, names
from protokube.nodeup.facts import Facts
from protokube.nodeup.model import assets
from protokube.nodeup.values import Installed, Link, Packages, Task

FOLDER = "/opt/cni/bin"
LEAST = (0, 9)
PLUGINS = ("bandwidth", "bridge", "firewall", "host-local", "loopback", "portmap", "ptp", "static", "tuning")
"""Those that a pod network of ours or a common add-on calls; every version since 0.9 has them."""


def packages(setup: MachineSetup, facts: Facts) -> tuple[str, ...]:
    if setup.asset(CNI_PLUGINS, facts.processor):
        return ()
    name = names(facts).cni
    found = available(facts, name)
    return (name,) if found and found >= LEAST else ()


def cni_tasks(setup: MachineSetup, facts: Facts, brought: Packages) -> Iterator[Task]:
    """`brought`: the task that brings their package."""
    if asset := assets.task(setup, facts, CNI_PLUGINS):
        yield asset
        yield Installed(asset=CNI_PLUGINS, path=FOLDER, member="*", after=(asset.key,))
    else:
        for each in PLUGINS:
            yield Link(path=f"{FOLDER}/{each}", target=f"{names(facts).cni_folder}/{each}", after=(brought.key,))


def why_not(setup: MachineSetup, facts: Facts) -> str:
    """Why there are none, in words; else empty."""
    if setup.asset(CNI_PLUGINS, facts.processor) or packages(setup, facts):
        return ""
    return f"the distribution has no {names(facts).cni}, and there is no archive of {CNI_PLUGINS} for {facts.processor}"
