"""Folders that agent, kubelet and pods expect. Keys are for root alone."""

from __future__ import annotations

from collections.abc import Iterator

from protokube.launch.setups.values import MachineSetup
from protokube.nodeup.facts import Facts
from protokube.nodeup.model import mounts
from protokube.nodeup.values import Directory, Task

OPEN = ("/etc/cni/net.d", "/etc/kubernetes", "/etc/kubernetes/config", "/etc/kubernetes/manifests", "/opt/cni/bin")
CLOSED = ("/etc/protokube", "/var/lib/kubelet", "/var/lib/protokube")


def folder_tasks(setup: MachineSetup, facts: Facts) -> Iterator[Task]:
    for path in OPEN:
        yield Directory(path=path, after=mounts.keys_above(path, setup, facts))
    for path in (*CLOSED, setup.pki):
        yield Directory(path=path, mode=0o700, after=mounts.keys_above(path, setup, facts))
