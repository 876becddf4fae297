"""protokube itself: the agent's launch document and unit, and the proxy to the API servers where the kubelet uses one.

Whatever the agent will start has to be there before it is started. It runs on machines that have a launch document.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from protokube.launch.boot import LaunchDocument
from protokube.launch.setups.values import MachineSetup
from protokube.nodeup.facts import Facts
from protokube.nodeup.model import proxy
from protokube.nodeup.values import Asset, File, Task, Unit

PROGRAM = "/usr/local/bin/protokube"
UNIT, PROXY_UNIT = "protokube-agent.service", "protokube-api-proxy.service"
DOCUMENT = "/etc/protokube/agent.json"
TEXT = f"""\
[Unit]
Description=Agent of a Kubernetes master: etcd volumes, names, control plane
# Launch data make a machine a master; without them there is nothing to do.
ConditionPathExists={DOCUMENT}
Wants=network-online.target dbus.socket
After=network-online.target dbus.socket time-sync.target containerd.service

[Service]
Type=notify
ExecStart={PROGRAM} agent
# Every round reports to the watchdog, and an idle agent has a round each ten seconds.
WatchdogSec=3min
Restart=always
RestartSec=2s
# What the agent started on a disk, such as mkfs, ends by itself; a new agent finds it.
KillMode=process
TimeoutStopSec=1min

[Install]
WantedBy=multi-user.target
"""
PROXY_TEXT = """\
[Unit]
Description=Way of this machine to the Kubernetes API servers
After=network-online.target
Wants=network-online.target

[Service]
ExecStart={command}
Restart=always
RestartSec=2s
DynamicUser=yes
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
"""


def agent_tasks(setup: MachineSetup, _facts: Facts, before: Sequence[Task]) -> Iterator[Task]:
    """`before`: what the kubelet needs that the agent will start."""
    if setup.agent is None:
        return
    document = File(path=DOCUMENT, content=(json.dumps(setup.agent, indent=1) + "\n").encode(), mode=0o600)
    texts = [File(path=each.path, content=b64decode(each.content), mode=each.mode) for each in setup.documents]
    yield from (document, *texts)
    if command := proxy_command(setup):
        yield Unit(name=PROXY_UNIT, content=PROXY_TEXT.format(command=command), enabled=True, running=True)
    keys = tuple(each.key for each in (document, *texts))
    yield Unit(
        name=UNIT,
        content=TEXT,
        drop_ins=proxy.drop_ins(setup),
        enabled=True,
        running=True,
        restart_on=keys,
        after=(*keys, *(each.key for each in before if not isinstance(each, Asset))),
    )


def proxy_command(setup: MachineSetup) -> str:
    """Empty where the kubelet of a master uses its own API server."""
    if setup.agent is None:
        return ""
    master = LaunchDocument.from_tree(dict(setup.agent)).master
    url = urlsplit(master.kubelet_api)
    if not master.kubelet_api or url.port == master.api_port:
        return ""
    return f"{PROGRAM} api-proxy --name={master.api_internal_name} --port={master.api_port} --listen={url.netloc}"
