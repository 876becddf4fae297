"""Kernel parameters and modules. The user's parameters override ours.

In a container the kernel is the host's: its modules, and all parameters but those of the container's own network.
"""

from __future__ import annotations

from collections.abc import Iterator

from protokube.launch.setups.values import MachineSetup
from protokube.nodeup.facts import Facts
from protokube.nodeup.values import Module, Sysctl, Task

FILE = "protokube.conf"
PARAMETERS_FILE = "99-protokube.conf"
MODULES = ("br_netfilter", "overlay")
NETWORK = {
    "net.ipv4.ip_forward": "1",
    "net.core.somaxconn": "32768",
    "net.ipv4.tcp_max_syn_backlog": "8096",
    "net.ipv4.tcp_rmem": "4096 12582912 16777216",
    "net.ipv4.tcp_slow_start_after_idle": "0",
    "net.ipv4.tcp_tw_reuse": "1",
    "net.ipv4.tcp_wmem": "4096 12582912 16777216",
}
"""Of a network namespace: pods are routed, and many connections come at once, as in the original."""
WHOLE_KERNEL = {
    "fs.file-max": "2097152",
    "fs.inotify.max_user_instances": "8192",
    "fs.inotify.max_user_watches": "524288",
    "kernel.keys.root_maxbytes": "25000000",
    "kernel.keys.root_maxkeys": "1000000",
    "kernel.panic": "10",
    "kernel.panic_on_oops": "1",
    "net.core.netdev_max_backlog": "16384",
    "net.core.rmem_max": "16777216",
    "net.core.wmem_max": "16777216",
    "vm.max_map_count": "262144",
    "vm.overcommit_memory": "1",
    "vm.panic_on_oom": "0",
}
"""With what a kubelet sets itself, or requires with `protectKernelDefaults`."""
BRIDGES = {
    "net.bridge.bridge-nf-call-ip6tables": "1",
    "net.bridge.bridge-nf-call-iptables": "1",
}
"""Rules of kube-proxy hold between pods on one bridge; br_netfilter brings these."""


def kernel_tasks(setup: MachineSetup, facts: Facts) -> Iterator[Task]:
    after: tuple[str, ...] = ()
    if not facts.container:
        modules = Module(file=FILE, names=tuple(sorted({*MODULES, *setup.modules})))
        yield modules
        after = (modules.key,)
    ours = NETWORK if facts.container else NETWORK | WHOLE_KERNEL | BRIDGES
    values = ours | dict(setup.sysctls)
    yield Sysctl(file=PARAMETERS_FILE, values=dict(sorted(values.items())), after=after)
