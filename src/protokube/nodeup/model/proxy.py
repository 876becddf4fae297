"""The HTTP proxy, for what of ours connects to the outside: units by drop-ins, and apt by a file of its own.

The user's shells are left alone. dnf, and whatever nodeup runs, get it in their environment.
"""

from __future__ import annotations

from collections.abc import Iterator

from protokube.launch.setups.values import MachineSetup
from protokube.nodeup.facts import Facts, PackageManager
from protokube.nodeup.values import File, Task

DROP_IN, APT_FILE = "10-protokube-proxy.conf", "/etc/apt/apt.conf.d/90protokube-proxy"


def proxy_tasks(setup: MachineSetup, facts: Facts) -> Iterator[Task]:
    if setup.proxy and facts.package_manager is PackageManager.APT:
        lines = (f'Acquire::{way}::Proxy "{setup.proxy.url}";\n' for way in ("http", "https"))
        yield File(path=APT_FILE, content="".join(lines).encode())


def drop_ins(setup: MachineSetup) -> dict[str, str]:
    """For a unit that connects to the outside; none without a proxy."""
    if not setup.proxy:
        return {}
    lines = (f'Environment="{name}={_escaped(value)}"\n' for name, value in sorted(setup.proxy.environment.items()))
    return {DROP_IN: "[Service]\n" + "".join(lines)}


def _escaped(value: str) -> str:
    """systemd expands percent signs, and reads backslashes and quotes."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
