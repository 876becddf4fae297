"""The pod ranges of a cluster: the whole of each IP family, and the mask of the part that one node gets.

The controller manager assigns the parts, agents accept no others. Both follow from the same fields, so they agree.
Imports no other part of the configuration: agents use `PodRange`, and complete nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

MASK = "nodeCIDRMaskSize"
"""The field for clusters of one IP family, whichever it is."""
FAMILY_MASKS = {4: "nodeCIDRMaskSizeIPv4", 6: "nodeCIDRMaskSizeIPv6"}
USUAL_MASKS = {4: 24, 6: 64}
"""The controller manager's defaults, by IP version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRange:
    """The pod range of one IP family."""

    network: IPv4Network | IPv6Network
    node_mask: int
    """The prefix length of one node's part."""


def mask_field(manager: Mapping[str, Any], ip_version: int) -> str:
    """The field of the controller manager that sets the mask of this family: its own if it is set."""
    own = FAMILY_MASKS[ip_version]
    return own if manager.get(own) is not None else MASK


def pod_ranges(cluster: Mapping[str, Any]) -> tuple[PodRange, ...]:
    """The pod ranges of a complete configuration, in the order of `podCIDR`."""
    manager = cluster["kubeControllerManager"]
    networks = [ip_network(text) for text in cluster["podCIDR"].split(",")]
    return tuple(
        PodRange(
            network=each,
            # to the controller manager, 0 is its default
            node_mask=manager.get(mask_field(manager, each.version)) or USUAL_MASKS[each.version],
        )
        for each in networks
    )
