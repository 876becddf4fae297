"""From a spec to the complete configuration: plain functions, in the order in which one decision needs another.

There is no iteration to a fixed point. Each step sees what the user said and what the steps before it decided, fills
gaps, and notes why. The result is checked as a whole; every problem comes out at once.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

from protokube.config import check, controlplane, dnscontroller, etcd, groups, machines, network, pki, rendering
from protokube.config.draft import Draft, Ledger
from protokube.errors import InvalidSpec, Problem
from protokube.spec import version as versions
from protokube.spec.decode import Tree
from protokube.spec.parse import GROUPS, Spec
from protokube.spec.version import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The same thing as the spec, with nothing left to decide."""

    name: str
    cluster: Tree
    groups: dict[str, Tree]
    rendered: dict[str, Tree]
    """Flags and files by component; under "" the cluster's, under a group's name its kubelet's."""
    ledger: Ledger
    warnings: tuple[Problem, ...]


def complete(spec: Spec, store: str | None = None, *, without_kubernetes: bool = False) -> Config:
    """Everything decided; `store` is where the configuration will lie, if that is known.

    Without Kubernetes, only etcd and names will run; the configuration is complete all the same.
    """
    misread = frozenset(each.path for each in spec.problems)
    ledger = Ledger(places=spec.places, problems=list(spec.problems), misread=misread)
    ledger.without_kubernetes = without_kubernetes
    root = Draft({GROUPS: copy.deepcopy(spec.groups)}, ledger)
    cluster = Draft(copy.deepcopy(spec.cluster), ledger)

    if not check.said(spec, ledger):  # nothing can be decided without a cloud, zones and roles
        stop_at_problems(ledger)

    version = decide_version(cluster, spec, ledger)
    cloud = str(cluster.get("cloud"))
    zones = decide_places(cluster, root, cloud)
    decide_names(cluster, cloud, spec.name)
    decide_store(cluster, spec.name, store)
    decide_topology(cluster, spec.name)
    dnscontroller.complete_dns_controller(cluster, cloud)
    inside = network.complete_addresses(cluster, cloud)
    network.complete_subnets(cluster, cloud, zones)
    groups.make_groups(cluster, root, zones, spec.translated)
    has_nodes = any(each.get("role") == "Node" for _, each in root.each(GROUPS))
    for _, group in root.each(GROUPS):
        groups.complete_group(group, cluster, cloud, version, has_nodes)
    etcd.complete_etcd(cluster, root, cloud, version, spec.name)
    controlplane.complete_images(cluster, version)
    runtime = machines.complete_runtime(cluster, version)
    machines.complete_cluster_dns(cluster, inside, version)
    controlplane.complete_apiserver(cluster, cloud, version)
    controlplane.complete_controller_manager(cluster, inside, cloud, version, spec.name)
    controlplane.complete_scheduler(cluster)
    machines.complete_proxy(cluster)
    machines.complete_kubelet(cluster, cloud, version, runtime)
    marked = machines.marked_by_taint(cluster, version)
    for _, group in root.each(GROUPS):
        machines.complete_group_runtime(group, cluster)
        machines.complete_group_kubelet(group, cluster, marked)
    pki.complete_pki(cluster, inside)

    check.whole(cluster, root, version, spec)
    rendered = rendering.render_all(cluster, root, version)
    check.check_files(cluster, root, rendered)
    if not ledger.problems:  # otherwise every flag that follows from a wrong value would be told as changed
        check.unchanged(spec.rendered, rendered, ledger)
    stop_at_problems(ledger)
    warnings = sorted({*spec.warnings, *ledger.warnings}, key=lambda each: each.order)
    return Config(
        name=spec.name,
        cluster=cluster.tree,
        groups=dict(sorted(root.get(GROUPS).items())),
        rendered=rendered,
        ledger=ledger,
        warnings=tuple(warnings),
    )


def stop_at_problems(ledger: Ledger) -> None:
    if ledger.problems:
        raise InvalidSpec(ledger.problems)


def decide_version(cluster: Draft, spec: Spec, ledger: Ledger) -> Version:
    text = cluster.decide("kubernetesVersion", str(versions.DEFAULT), "the newest version we know well")
    version = versions.parse(text) or versions.DEFAULT
    ledger.for_reading = spec.translated and version < versions.OLDEST
    return version


def decide_places(cluster: Draft, root: Draft, cloud: str) -> list[str]:
    """Zones, region, and how many masters and nodes: said, or read off subnets, groups and members."""
    said = cluster.get("subnets") or {}
    by_subnet = [each["zone"] for each in said.values() if "zone" in each]
    by_group = [zone for _, each in root.each(GROUPS) for zone in each.get("zones") or []]
    regional = any("region" in each for each in said.values())
    if by_subnet and not cluster.has("zones") and not (regional and by_group):
        cluster.decide("zones", list(dict.fromkeys(by_subnet)), "where the subnets lie", cluster.at("subnets"))
    if by_group and not cluster.has("zones"):
        cluster.decide("zones", list(dict.fromkeys(by_group)), "where the groups stand", GROUPS)
    if by_name := network.zones_in_names(cloud, cluster.tree):
        of = cluster.at("etcdClusters")
        cluster.decide("zones", by_name, "the groups of the etcd members are named after them", of)
    because = f"{cloud} has no zones of its own"
    zones = cluster.decide("zones", groups.DEFAULT_ZONES.get(cloud, []), because, cluster.at("cloud"))
    regions = {region for zone in zones if (region := network.region_of(cloud, zone))}
    if len(regions) == 1:
        cluster.decide("region", regions.pop(), "the region of the zones", cluster.at("zones"))
    _count(cluster, root, "masters", "Master", 3, "any one may be lost")
    spare = 0 if cloud in groups.DEFAULT_ZONES else 2
    because = "one may be lost" if spare else "the inventory names nodes, if there are any"
    _count(cluster, root, "nodes", "Node", spare, because)
    return list(zones)


def _count(cluster: Draft, root: Draft, field: str, role: str, otherwise: int, because: str) -> None:
    wrote = [(name, each) for name, each in root.each(GROUPS) if each.get("role") == role]
    if wrote:
        total = sum(groups.machines(each) for _, each in wrote)
        cluster.decide(field, total, f"the groups of role {role}", *(each.path for _, each in wrote))
    members = [len(each.get("members") or {}) for _, each in cluster.each("etcdClusters")]
    if role == "Master" and members and members[0]:
        cluster.decide(field, members[0], "one for each etcd member", cluster.at("etcdClusters"))
    cluster.decide(field, otherwise, because)


def decide_names(cluster: Draft, cloud: str, name: str) -> None:
    cluster.decide("masterInternalName", f"api.internal.{name}", "as in the original", "metadata.name")
    cluster.decide("masterPublicName", f"api.{name}", "as in the original", "metadata.name")
    if cloud == "local":
        cluster.decide("dnsZone", name, "the embedded DNS server serves it", "metadata.name")
    cluster.decide("additionalSans", [], "no further names")
    cluster.decide("clusterDNSDomain", "cluster.local", "what everybody expects")


def decide_store(cluster: Draft, name: str, store: str | None) -> None:
    if store:
        cluster.decide("configBase", f"{store.rstrip('/')}/{name}", "the store it is written to", "metadata.name")
    base, of = etcd.in_store(cluster)
    cluster.decide("keyStore", f"{base}pki", "beside the configuration", *of)
    cluster.decide("secretStore", f"{base}secrets", "beside the configuration", *of)


def decide_topology(cluster: Draft, name: str) -> None:
    topology = cluster.under("topology")
    topology.decide("masters", "public", "machines have addresses of their own")
    topology.decide("nodes", topology.get("masters"), "as the masters", topology.at("masters"))
    hidden = name.endswith(".k8s.local")
    because = "a zone for all to see"
    if hidden:
        because = "no zone can hold this name; machines compute the records themselves"
    topology.under("dns").decide("type", "None" if hidden else "Public", because, "metadata.name")
    networking = cluster.under("networking")
    networking.decide("plugin", "kubenet", "a bridge on each node and routes between them: nothing to install")
    cluster.decide("api", {"dns": {}}, "the masters' addresses stand in DNS")
    api = cluster.under("api")
    if isinstance(api.get("loadBalancer"), dict):
        balancer = api.under("loadBalancer")
        balancer.decide("type", "Public", "people reach it from outside")
        balancer.decide("useForInternalApi", False, "machines find masters by DNS, which heals faster")
    for field, who in (("sshAccess", "SSH"), ("kubernetesApiAccess", "the API")):
        cluster.decide(field, ["0.0.0.0/0"], f"anybody may try to reach {who}; keys and certificates decide")
    cluster.decide("nodePortAccess", [], "nobody outside reaches node ports")
    cluster.decide("authorization", "RBAC", "rights are given, not taken")
