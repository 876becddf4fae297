"""Addresses: the machines' network, and how the range inside the cluster is split between pods and services."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Any

from protokube.config.draft import Draft

Network = ipaddress.IPv4Network
AWS_NETWORK = "172.20.0.0/16"
INSIDE = "100.64.0.0/10"
LARGEST_SERVICES = 12
"""An API server refuses a services' range of more than 2**20 addresses."""
DNS_HOST = 10
"""The cluster's DNS server is the tenth address of the services' range, the API is the first."""


@dataclass(frozen=True, slots=True)
class Inside:
    """The address range inside the cluster, split into pods and services."""

    pods: Network
    services: Network

    @property
    def api_address(self) -> str:
        return str(self.services.network_address + 1)

    @property
    def dns_address(self) -> str:
        return str(self.services.network_address + DNS_HOST)


def network(text: object) -> Network | None:
    """An IPv4 network; None if the text is not one."""
    try:
        return ipaddress.IPv4Network(str(text))
    except ValueError:
        return None


def pods_of(whole: Network) -> Network:
    """The upper half."""
    return list(whole.subnets(1))[1] if whole.prefixlen < whole.max_prefixlen else whole


def services_of(whole: Network) -> Network:
    """The first eighth, or as much of it as an API server accepts."""
    prefix = min(max(whole.prefixlen + 3, LARGEST_SERVICES), whole.max_prefixlen)
    return next(whole.subnets(new_prefix=prefix))


def complete_addresses(cluster: Draft, cloud: str) -> Inside:
    """The machines' network where the cloud has one, and the split of the range inside the cluster."""
    plugin = (cluster.get("networking") or {}).get("plugin")
    if cloud == "aws" and not cluster.has("networkID"):
        cluster.decide("networkCIDR", AWS_NETWORK, "the usual private network on AWS", cluster.at("cloud"))
    if plugin == "amazonvpc" and cluster.has("networkCIDR"):
        because = "with amazonvpc pods have addresses of the machines' network"
        of = (cluster.at("networkCIDR"), cluster.at("networking.plugin"))
        cluster.decide("nonMasqueradeCIDR", cluster.get("networkCIDR"), because, *of)
    whole_text = cluster.decide("nonMasqueradeCIDR", INSIDE, "a range that private networks rarely use")
    whole = network(whole_text) or Network(INSIDE)
    outer = cluster.at("nonMasqueradeCIDR")
    # users of the original set these two on the component that uses them
    for name, component, field in (
        ("podCIDR", "kubeControllerManager", "clusterCIDR"),
        ("serviceClusterIPRange", "kubeAPIServer", "serviceClusterIPRange"),
    ):
        value = (cluster.get(component) or {}).get(field)
        if value:
            cluster.inherit(name, value, cluster.at(f"{component}.{field}"))
    if plugin == "amazonvpc":
        pods = cluster.get("networkCIDR") or str(pods_of(whole))
        because = "with amazonvpc pods have addresses of the machines' network"
        cluster.decide("podCIDR", pods, because, cluster.at("networkCIDR"), cluster.at("networking.plugin"))
        cluster.decide("serviceClusterIPRange", str(services_of(Network(INSIDE))), "apart from the machines' network")
    cluster.decide("podCIDR", str(pods_of(whole)), "its upper half is for pods", outer)
    cluster.decide("serviceClusterIPRange", str(services_of(whole)), "its first eighth is for services", outer)
    return Inside(
        pods=network(cluster.get("podCIDR")) or pods_of(whole),
        services=network(cluster.get("serviceClusterIPRange")) or services_of(whole),
    )


GCE_ZONE = re.compile(r"(?:^|-)([a-z]+-[a-z]+\d+-[a-z])$")
REGIONS = {"aws": re.compile(r"^([a-z]{2}(?:-[a-z]+)+-\d+)"), "gce": re.compile(r"^([a-z]+-[a-z]+\d+)-[a-z]$")}


def region_of(cloud: str, zone: str) -> str | None:
    """The region of a zone by the cloud's naming scheme; None if the name does not match."""
    found = REGIONS[cloud].match(zone) if cloud in REGIONS else None
    return found[1] if found else None


def zones_in_names(cloud: str, cluster: dict[str, Any]) -> list[str]:
    """On GCE, the zones in the names of the etcd members' groups."""
    if cloud != "gce":
        return []
    members = [
        each for etcd in (cluster.get("etcdClusters") or {}).values() for each in (etcd.get("members") or {}).values()
    ]
    found = (GCE_ZONE.search(str(each.get("instanceGroup"))) for each in members)
    return list(dict.fromkeys(each[1] for each in found if each))


def complete_subnets(cluster: Draft, cloud: str, zones: list[str]) -> None:
    """One subnet per zone (per region on GCE), with unused address ranges of the network."""
    private = cluster.get("topology")["nodes"] == "private" or cluster.get("topology")["masters"] == "private"
    of = (cluster.at("zones"), cluster.at("topology"))
    if cloud == "aws" and not cluster.has("subnets"):
        wanted = {zone: {"zone": zone, "type": "Private" if private else "Public"} for zone in zones}
        if private:  # load balancers and NAT gateways of a private network need a public subnet in each zone
            wanted |= {f"utility-{zone}": {"zone": zone, "type": "Utility"} for zone in zones}
        cluster.decide("subnets", wanted, "one for each zone", *of)
    elif cloud == "gce" and not cluster.has("subnets") and cluster.get("region"):
        name = cluster.get("region")
        wanted = {name: {"region": name, "type": "Private" if private else "Public"}}
        cluster.decide("subnets", wanted, "on GCE a subnet spans the zones of a region", cluster.at("region"))
    cluster.decide("subnets", {}, f"{cloud} has no subnets", cluster.at("cloud"))
    for name, subnet in cluster.each("subnets"):
        if name in zones and cloud != "gce":
            subnet.decide("zone", name, "the subnet has the zone's name", cluster.at("zones"))
        kind = "Private" if private else "Public"
        subnet.decide("type", kind, "the topology of the machines", cluster.at("topology"))
    if cloud == "aws":
        _fill_cidrs(cluster)


def _fill_cidrs(cluster: Draft) -> None:
    """An eighth of the network for each subnet; the first free eighth is split again for utility subnets."""
    whole = network(cluster.get("networkCIDR"))
    subnets = list(cluster.each("subnets"))
    missing = [(name, each) for name, each in subnets if not each.has("cidr") and not each.has("id")]
    if not whole or whole.prefixlen > whole.max_prefixlen - 6 or not missing:
        return
    given = [taken for _, each in subnets if (taken := network(each.get("cidr")))]
    free = [part for part in whole.subnets(3) if not any(part.overlaps(taken) for taken in given)]
    utility = [each for _, each in sorted(missing, key=_by_zone) if each.get("type") == "Utility"]
    others = [each for _, each in sorted(missing, key=_by_zone) if each.get("type") != "Utility"]
    small = list(free.pop(0).subnets(3)) if free else []
    pairs = [*zip(utility, small, strict=False), *zip(others, free, strict=False)]
    for each, part in pairs:
        because = "the next free part of the network"
        each.decide("cidr", str(part), because, cluster.at("networkCIDR"))
    for name, each in missing:
        if not each.has("cidr"):
            hint = "give each subnet a `cidr`, or use a larger networkCIDR"
            cluster.ledger.problem(each.at("cidr"), f"no part of {whole} is left for {name!r}", hint, each.path)


def _by_zone(item: tuple[str, Draft]) -> tuple[str, str]:
    return (str(item[1].get("zone") or ""), item[0])
