"""Which routes this machine needs so that its pods reach those of every other node: decided here, and pure.

A route is ours by its mark, and nothing without the mark is ever changed: a destination that somebody else has routed
stays theirs. Old nodes may still be listed with an address that a new one has, or that is ours by now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

from protokube.host import Route

Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What of a Node matters for routes."""

    name: str
    addresses: tuple[str, ...]
    ranges: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutePlan:
    remove: tuple[Route, ...]
    add: tuple[Route, ...]
    leave: tuple[tuple[str, str], ...]
    """Destinations that are not routed by us though a node has them, each with the reason."""


def node(tree: Mapping[str, Any]) -> Node:
    """Read a Node object; whatever it lacks is empty."""
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    ranges = spec.get("podCIDRs") or ([spec["podCIDR"]] if spec.get("podCIDR") else [])
    addresses = [each["address"] for each in status.get("addresses") or () if each.get("type") == "InternalIP"]
    return Node(name=tree["metadata"]["name"], addresses=tuple(addresses), ranges=tuple(ranges))


def plan(observed: Iterable[Route], nodes: Iterable[Node], me: str, mine: Iterable[str]) -> RoutePlan:
    """Compare the routes there are with those the nodes need; `me` is our node, `mine` this machine's addresses."""
    seen, known = list(observed), sorted(nodes, key=lambda each: each.name)
    ours = {route for route in seen if route.ours}
    theirs = {route.destination for route in seen if not route.ours}
    taken: list[Network] = [subnet for each in known if each.name == me for subnet in _networks(each.ranges)]
    wanted: dict[str, Route] = {}
    leave: list[tuple[str, str]] = []
    for each in known:
        if each.name == me:
            continue
        for subnet in _networks(each.ranges):
            via = _address(each.addresses, subnet.version)
            if reason := _why_not(each, subnet, via, set(mine), theirs, taken):
                leave.append((str(subnet), reason))
            else:
                wanted[str(subnet)] = Route(destination=str(subnet), via=via, ours=True)
                taken.append(subnet)
    desired = set(wanted.values())
    return RoutePlan(remove=_sorted(ours - desired), add=_sorted(desired - ours), leave=tuple(sorted(leave)))


def _why_not(each: Node, subnet: Network, via: str, mine: set[str], theirs: set[str], taken: Sequence[Network]) -> str:
    if not via:
        return f"{each.name} has no address of that family"
    if via in mine:
        return f"{each.name} is listed with an address of this machine"
    if any(subnet.overlaps(other) for other in taken if other.version == subnet.version):
        return f"{each.name} has a range that is in use"
    if str(subnet) in theirs:
        return "somebody else has made a route there"
    return ""


def _networks(ranges: Iterable[str]) -> list[Network]:
    found = []
    for text in ranges:
        try:
            found.append(ip_network(text))
        except ValueError:  # an object of somebody's own making
            continue
    return found


def _address(addresses: Iterable[str], version: int) -> str:
    for text in addresses:
        try:
            address = ip_address(text)
        except ValueError:
            continue
        if address.version == version:
            return str(address)
    return ""


def _sorted(routes: Iterable[Route]) -> tuple[Route, ...]:
    return tuple(sorted(routes, key=lambda route: (route.destination, route.via)))
