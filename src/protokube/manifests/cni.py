"""The CNI configuration of one node: a bridge, with addresses of the node's pod range.

Pods of other nodes are reached through routes on the machine, which are not configured here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from ipaddress import ip_network
from typing import Any

FILE = "/etc/cni/net.d/10-protokube.conflist"
VERSION = "0.4.0"
"""Supported by every container runtime since 2019."""
BRIDGE = "pods0"
EVERYWHERE = {4: "0.0.0.0/0", 6: "::/0"}


def network(ranges: Sequence[str]) -> str:
    """The file for a node with these pod ranges: one, or one of each address family."""
    subnets = [ip_network(each) for each in ranges]
    bridge: dict[str, Any] = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "forceAddress": True,  # a recreated Node may have another range while the bridge still exists
        "hairpinMode": True,  # a pod may reach itself through a service address
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": str(subnet)}] for subnet in subnets],
            "routes": [{"dst": EVERYWHERE[subnet.version]} for subnet in subnets],
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": VERSION, "name": "pods", "plugins": [bridge, ports]}, indent=2) + "\n"
