"""Plan the routes that this machine needs to reach the pods of every other node. Pure.

A route is ours by its mark, and no other route is ever changed: a destination with a foreign route keeps it. A stale
Node may still be listed with an address that a new node, or this machine, has by now.

A Node's pod CIDR and addresses are written by its kubelet, which may be compromised. So a route needs a CIDR that the
controller manager could have assigned and a gateway on a directly connected network; of two Nodes with one CIDR, the
older gets it. If two Nodes claim one address, both get routes: we cannot tell which one lies, and a false claim
misdirects only the liar's own CIDR.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from protokube.config.podranges import PodRange
from protokube.host import Route

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The fields of a Node that matter for routes."""

    name: str
    addresses: tuple[str, ...]
    ranges: tuple[str, ...]
    created: str = ""
    """creationTimestamp, set by the API server and not by the kubelet; later ones sort last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutePlan:
    remove: tuple[Route, ...]
    add: tuple[Route, ...]
    leave: tuple[tuple[str, str], ...]
    """Nodes' CIDRs that get no route of ours, each with the reason."""


def node(tree: Mapping[str, Any]) -> Node:
    """Read a Node object; missing fields are empty."""
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    ranges = spec.get("podCIDRs") or ([spec["podCIDR"]] if spec.get("podCIDR") else [])
    addresses = [each["address"] for each in status.get("addresses") or () if each.get("type") == "InternalIP"]
    created = str(tree["metadata"].get("creationTimestamp") or "")
    return Node(name=tree["metadata"]["name"], addresses=tuple(addresses), ranges=tuple(ranges), created=created)


def plan(
    observed: Iterable[Route], nodes: Iterable[Node], me: str, mine: Iterable[str], pods: Sequence[PodRange]
) -> RoutePlan:
    """Compare the routes there are with those the nodes need; `me` is our node, `mine` this machine's addresses."""
    seen, known = list(observed), sorted(nodes, key=lambda each: (each.created, each.name))
    ours = {route for route in seen if route.ours}
    theirs = {route.destination for route in seen if not route.ours}
    near = _networks(route.destination for route in seen if not route.ours and not route.via)
    taken: list[Network] = [subnet for each in known if each.name == me for subnet in _networks(each.ranges)]
    wanted: dict[str, Route] = {}
    leave: list[tuple[str, str]] = []
    for each in known:
        if each.name == me:
            continue
        for subnet in _networks(each.ranges):
            via = _address(each.addresses, subnet.version)
            reason = _why_no_part(subnet, pods) or _why_no_way(via, set(mine), near, pods)
            if reason := reason or _why_not(subnet, theirs, taken):
                leave.append((str(subnet), f"{each.name}: {reason}"))
            else:
                wanted[str(subnet)] = Route(destination=str(subnet), via=str(via), ours=True)
                taken.append(subnet)
    desired = set(wanted.values())
    return RoutePlan(remove=_sorted(ours - desired), add=_sorted(desired - ours), leave=tuple(sorted(leave)))


def _why_no_part(subnet: Network, pods: Sequence[PodRange]) -> str:
    own = [each for each in pods if each.network.version == subnet.version]
    inside = [each for each in own if subnet.subnet_of(each.network)]  # type: ignore[arg-type]  # of one family
    if not inside:
        return f"its range is outside of the pods' {', '.join(str(each.network) for each in pods) or 'range'}"
    if all(subnet.prefixlen != each.node_mask for each in inside):
        return f"its range is no /{inside[0].node_mask}, as that of every node is"
    return ""


def _why_no_way(via: Address | None, mine: set[str], near: Sequence[Network], pods: Sequence[PodRange]) -> str:
    if via is None:
        return "it has no address of that family"
    if str(via) in mine:
        return "it is listed with an address of this machine"
    if any(via in each.network for each in pods):
        return f"it is listed with {via}, an address of pods"
    if not any(_has_host(each, via) for each in near):
        return f"it is listed with {via}, which is no neighbour of this machine"
    return ""


def _has_host(near: Network, address: Address) -> bool:
    ends = (near.network_address, near.broadcast_address) if near.num_addresses > 2 else ()
    return address in near and address not in ends


def _why_not(subnet: Network, theirs: set[str], taken: Sequence[Network]) -> str:
    if any(subnet.overlaps(other) for other in taken):
        return "its range is in use"
    return "somebody else has made a route there" if str(subnet) in theirs else ""


def _networks(ranges: Iterable[str]) -> list[Network]:
    found = []
    for text in ranges:
        try:
            found.append(ip_network(_plain(text)))
        except ValueError:  # a malformed Node object
            continue
    return found


def _address(addresses: Iterable[str], version: int) -> Address | None:
    for text in addresses:
        try:
            address = ip_address(_plain(text))
        except ValueError:
            continue
        if address.version == version:
            return address
    return None


def _plain(text: str) -> str:
    """Refuse an IPv6 zone id (`%...`): it may hold any text, which would inject into the input of `ip`."""
    if "%" in text:
        raise ValueError(text)
    return text


def _sorted(routes: Iterable[Route]) -> tuple[Route, ...]:
    return tuple(sorted(routes, key=lambda route: (route.destination, route.via)))
