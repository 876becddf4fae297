"""The kubelet: its program, its unit, and the files that it reads. It is neither enabled nor started.

The agent starts it, each round, once disks and names are ready. On a master the agent also writes the kubelet's files,
and takes changes to them through the masters one after the other: there nodeup writes them only where there are none.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from protokube import fast_yaml
from protokube.launch.files import KUBELET_ENV, kubelet_files
from protokube.launch.machine import KubeletConfig
from protokube.launch.setups.values import KUBECTL, KUBELET, MachineSetup
from protokube.manifests.component import PROGRAMS
from protokube.nodeup.facts import Facts
from protokube.nodeup.model import assets, proxy
from protokube.nodeup.values import File, Installed, Task, Unit

PROGRAM, UNIT = f"{PROGRAMS}/kubelet", "kubelet.service"
MACHINE_ENV = "/etc/default/kubelet-machine"
"""Flags of this machine alone: the agent writes those of its group."""
TEXT = f"""\
[Unit]
Description=Kubernetes kubelet
After=containerd.service network-online.target
Wants=containerd.service network-online.target
StartLimitIntervalSec=0
# No Install section: the agent starts it, once disks and names are ready.

[Service]
EnvironmentFile={KUBELET_ENV}
EnvironmentFile={MACHINE_ENV}
ExecStart={PROGRAM} $KUBELET_FLAGS $KUBELET_MACHINE_FLAGS
User=root
Restart=always
RestartSec=2s
# Its containers outlive it.
KillMode=process
OOMScoreAdjust=-999
CPUAccounting=yes
MemoryAccounting=yes
"""


def kubelet_tasks(setup: MachineSetup, facts: Facts) -> Iterator[Task]:
    for name in (KUBELET, *((KUBECTL,) if setup.is_master else ())):
        if asset := assets.task(setup, facts, name):
            yield asset
            yield Installed(asset=name, path=f"{PROGRAMS}/{name}", after=(asset.key,))
    for path, text in sorted(kubelet_files(setup.kubelet).items()):
        yield File(path=path, content=text.encode(), keep=setup.is_master)
    flags = shlex.quote(shlex.join(own_flags(setup)))
    yield File(path=MACHINE_ENV, content=f"KUBELET_MACHINE_FLAGS={flags}\n".encode())
    yield Unit(name=UNIT, content=TEXT, drop_ins=proxy.drop_ins(setup))


def own_flags(setup: MachineSetup) -> list[str]:
    found = [f"--hostname-override={setup.node_name}"] if setup.node_name else []
    return [*found, f"--node-ip={setup.address}"] if setup.address else found


def setting(kubelet: KubeletConfig, entry: str, flag: str) -> Any:
    """A setting of the kubelet in its configuration file or, for versions that have it there, among its flags."""
    if flag in kubelet.flags:
        return kubelet.flags[flag]
    for text in kubelet.files.values():
        tree = _tree(text)
        if isinstance(tree, dict) and entry in tree:
            return tree[entry]
    return None


def is_false(value: Any) -> bool:
    """Extra flags are text as often as not."""
    return str(value).lower() == "false"


def cgroup_driver(kubelet: KubeletConfig) -> str:
    return str(setting(kubelet, "cgroupDriver", "cgroup-driver") or "cgroupfs")


@lru_cache(maxsize=16)
def _tree(text: str) -> Any:
    return fast_yaml.load(text)
