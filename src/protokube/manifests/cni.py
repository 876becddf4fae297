"""The network of one node's pods, as the container runtime reads it: a bridge, with addresses of the node's own range.

Pods of other nodes are reached by routes of the machine, not by anything written here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from ipaddress import ip_network
from typing import Any

FILE = "/etc/cni/net.d/10-protokube.conflist"
VERSION = "0.4.0"
"""What every runtime since 2019 reads."""
BRIDGE = "pods0"
EVERYWHERE = {4: "0.0.0.0/0", 6: "::/0"}


def network(ranges: Sequence[str]) -> str:
    """The file, for a node with these ranges of pod addresses: one, or one of each family."""
    subnets = [ip_network(each) for each in ranges]
    bridge: dict[str, Any] = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "forceAddress": True,  # a node that was made anew may have another range, and the bridge is still there
        "hairpinMode": True,  # a pod may reach itself by the address of a service
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": str(subnet)}] for subnet in subnets],
            "routes": [{"dst": EVERYWHERE[subnet.version]} for subnet in subnets],
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": VERSION, "name": "pods", "plugins": [bridge, ports]}, indent=2) + "\n"
