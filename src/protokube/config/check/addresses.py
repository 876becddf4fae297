"""Address ranges: which must not overlap, which must contain others, and their sizes."""

from __future__ import annotations

import ipaddress
import re

from protokube.config.draft import Draft
from protokube.config.network import LARGEST_SERVICES, Network, network
from protokube.config.podranges import FAMILY_MASKS, MASK, mask_field
from protokube.spec.parse import GROUPS
from protokube.spec.version import Version

PORTS = re.compile(r"^(\d+)-(\d+)\Z")
TAKEN = {10250: "kubelet", 10256: "kube-proxy's health", 10257: "kube-controller-manager", 10259: "kube-scheduler"}
FAMILY_MASK_ALONE = Version(1, 23)
"""Release notes of 1.23: older controller managers accept the mask of one IP family only if there are two families."""


def check_addresses(cluster: Draft, root: Draft, version: Version) -> None:
    ranges = _ranges(cluster)
    pods, services = ranges.get("podCIDR"), ranges.get("serviceClusterIPRange")
    outer, machines = ranges.get("nonMasqueradeCIDR"), ranges.get("networkCIDR")
    vpc = cluster.get("networking")["plugin"] == "amazonvpc"
    ledger = cluster.ledger
    if pods and services and pods.overlaps(services):
        hint = "give each a range of its own inside nonMasqueradeCIDR"
        ledger.problem("serviceClusterIPRange", f"{services} overlaps podCIDR {pods}", hint, "podCIDR")
    if outer and not vpc:
        for name, part in (("podCIDR", pods), ("serviceClusterIPRange", services)):
            if part and not part.subnet_of(outer):
                hint = "otherwise traffic to it is masqueraded; choose a range inside"
                ledger.problem(name, f"{part} is not inside nonMasqueradeCIDR {outer}", hint, "nonMasqueradeCIDR")
        if machines and machines.overlaps(outer):
            hint = "pods could not tell addresses of machines from those of pods; choose another range for one of them"
            ledger.problem("networkCIDR", f"{machines} overlaps nonMasqueradeCIDR {outer}", hint, "nonMasqueradeCIDR")
    if services and not LARGEST_SERVICES <= services.prefixlen <= 28:
        hint = f"/{LARGEST_SERVICES}, the largest that an API server accepts, to /28"
        ledger.problem("serviceClusterIPRange", f"/{services.prefixlen} is not supported", hint)
    _dns(cluster, services)
    _subnets(cluster, machines)
    _node_ranges(cluster, root, pods, version)
    _access(cluster)
    _node_ports(cluster)
    _copies(cluster)


def _ranges(cluster: Draft) -> dict[str, Network]:
    found: dict[str, Network] = {}
    for name in ("networkCIDR", "nonMasqueradeCIDR", "podCIDR", "serviceClusterIPRange"):
        if cluster.get(name) is not None and (each := _network(cluster, name, cluster.get(name))):
            found[name] = each
    return found


def _network(draft: Draft, name: str, text: str) -> Network | None:
    found = network(text)
    if found is None:
        path = draft.at(name)
        try:
            wide = ipaddress.ip_network(text, strict=False)
        except ValueError:
            draft.ledger.problem(path, f"{text!r} is not a range of addresses", "for example 10.0.0.0/16", draft.path)
            return None
        if wide.version == 6:
            draft.ledger.problem(path, f"{text!r} is IPv6, which is not supported here", "", draft.path)
        else:
            message = f"{text!r} has bits set after its prefix"
            draft.ledger.problem(path, message, f"did you mean {wide}?", draft.path)
    return found


def _dns(cluster: Draft, services: Network | None) -> None:
    text = cluster.get("clusterDNS")["serverIP"]
    path = "clusterDNS.serverIP"
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        cluster.ledger.problem(path, f"{text!r} is not an address", "for example 100.64.0.10", "kubelet.clusterDNS")
        return
    if services and address not in services:
        hint = "choose one of its first addresses"
        also = ("kubelet.clusterDNS", "serviceClusterIPRange")
        cluster.ledger.problem(path, f"{address} is not inside serviceClusterIPRange {services}", hint, *also)
    elif services and address == services.network_address + 1:
        cluster.ledger.problem(path, f"{address} is the address of the API server", f"use {address + 9}")


def _subnets(cluster: Draft, machines: Network | None) -> None:
    more = [each for text in cluster.get("additionalNetworkCIDRs") or [] if (each := network(text))]
    whole = [each for each in (machines, *more) if each]
    seen: list[tuple[str, Network]] = []
    for name, subnet in cluster.each("subnets"):
        if not subnet.has("cidr"):
            continue
        part = _network(subnet, "cidr", subnet.get("cidr"))
        if part is None:
            continue
        path = subnet.at("cidr")
        if whole and not any(part.subnet_of(each) for each in whole):
            ranges = ", ".join(str(each) for each in whole)
            cluster.ledger.problem(path, f"{part} is not inside the network {ranges}", "", "networkCIDR")
        for other, taken in seen:
            if part.overlaps(taken):
                cluster.ledger.problem(path, f"{part} overlaps subnet {other!r} {taken}", "", subnet.path)
        seen.append((name, part))


def _node_ranges(cluster: Draft, root: Draft, pods: Network | None, version: Version) -> None:
    manager = cluster.under("kubeControllerManager")
    if not pods or not manager.get("allocateNodeCIDRs"):
        return
    _family_masks(manager, pods, version)
    field = mask_field(manager.tree, pods.version)
    mask, path = manager.get(field), manager.at(field)
    if not pods.prefixlen <= mask <= 30:
        cluster.ledger.problem(
            path, f"a range of /{mask} for each node does not fit into podCIDR {pods}", "", "podCIDR"
        )
        return
    if mask - pods.prefixlen > 16:
        hint = f"at most 16 bits longer than podCIDR: /{pods.prefixlen + 16}, or a smaller podCIDR"
        cluster.ledger.problem(path, f"the controller manager refuses ranges of /{mask} in {pods}", hint, "podCIDR")
        return
    room = 2 ** (mask - pods.prefixlen)
    machines = sum(group.get("maxSize") for _, group in root.each(GROUPS) if group.get("role") != "Bastion")
    if machines > room:
        message = f"{pods} has room for {room} nodes, the groups may grow to {machines}"
        cluster.ledger.warn("podCIDR", message, f"use a larger podCIDR or a longer {field}")


def _family_masks(manager: Draft, pods: Network, version: Version) -> None:
    """Refuse the masks with which a controller manager does not start; `podCIDR` is IPv4."""
    own, other = FAMILY_MASKS[4], FAMILY_MASKS[6]
    if manager.has(other):
        manager.ledger.problem(manager.at(other), f"podCIDR {pods} is not IPv6", f"set {own} or {MASK}")
    if manager.has(own) and manager.has(MASK):
        message = f"the controller manager does not start if {MASK} is set too"
        manager.ledger.problem(manager.at(own), message, "set only one of them")
    elif manager.has(own) and version < FAMILY_MASK_ALONE:
        message = f"the controller manager of {version.short} accepts it only if pods have two IP families"
        manager.ledger.unfit(manager.at(own), message, f"set {MASK}")


def _access(cluster: Draft) -> None:
    for name in ("sshAccess", "kubernetesApiAccess", "nodePortAccess"):
        for index, text in enumerate(cluster.get(name)):
            try:
                ipaddress.ip_network(text, strict=False)
            except ValueError:
                if not text.startswith("pl-"):  # a prefix list of AWS
                    path = cluster.at(f"{name}[{index}]")
                    cluster.ledger.problem(path, f"{text!r} is not a range of addresses", "for example 203.0.113.0/24")


def _node_ports(cluster: Draft) -> None:
    api = cluster.under("kubeAPIServer")
    path, text = api.at("serviceNodePortRange"), api.get("serviceNodePortRange")
    found = PORTS.match(str(text))
    first, last = (int(found[1]), int(found[2])) if found else (0, 0)
    if not found or not 1 <= first <= last <= 65535:
        cluster.ledger.problem(path, f"{text!r} is not a range of ports", "for example 30000-32767")
        return
    taken = {api.get("securePort"): "the API server"} | TAKEN
    for key, etcd in cluster.each("etcdClusters"):
        taken |= {etcd.get(port): f"etcd {key}" for port in ("clientPort", "peerPort", "metricsPort")}
    for port, who in sorted(taken.items(), key=lambda each: str(each[0])):
        if isinstance(port, int) and first <= port <= last:
            cluster.ledger.problem(path, f"{text} contains {port}, the port of {who}", "for example 30000-32767")


COPIES = (
    ("kubeAPIServer.serviceClusterIPRange", "serviceClusterIPRange"),
    ("kubeControllerManager.serviceClusterIPRange", "serviceClusterIPRange"),
    ("kubeControllerManager.clusterCIDR", "podCIDR"),
    ("clusterDNS.domain", "clusterDNSDomain"),
    ("kubelet.clusterDomain", "clusterDNSDomain"),
)


def _copies(cluster: Draft) -> None:
    """A value that several components share must be the same for all."""
    for copy, original in COPIES:
        section, _, name = copy.partition(".")
        value = (cluster.get(section) or {}).get(name)
        if value is not None and value != cluster.get(original):
            message = f"{value} differs from {original} {cluster.get(original)}"
            cluster.ledger.problem(copy, message, f"set only {original}; this is derived from it", original)
