"""Complete a spec: plain functions, in the order in which one decision depends on another.

There is no iteration to a fixed point. Each step reads the user's values and the decisions of earlier steps, sets what
is missing, and records why. The result is checked as a whole; all problems are reported at once.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

from protokube.config import check, controlplane, dnscontroller, etcd, groups, machines, network, pki
from protokube.config.draft import Draft, Ledger
from protokube.config.render import components
from protokube.errors import InvalidSpec, Problem
from protokube.spec import version as versions
from protokube.spec.decode import Tree
from protokube.spec.parse import GROUPS, Spec
from protokube.spec.version import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The complete configuration: the spec, with every default and derived value set."""

    name: str
    cluster: Tree
    groups: dict[str, Tree]
    rendered: dict[str, Tree]
    """Flags and files by component: of the control plane under "", of a group's kubelet under the group's name."""
    ledger: Ledger
    warnings: tuple[Problem, ...]


def complete(spec: Spec, store: str | None = None, *, without_kubernetes: bool = False) -> Config:
    """Set every value; `store` is the state store for the configuration, if it is known.

    `without_kubernetes`: only etcd and DNS names will run; the configuration is complete nevertheless.
    """
    misread = frozenset(each.path for each in spec.problems)
    ledger = Ledger(places=spec.places, problems=list(spec.problems), misread=misread)
    ledger.without_kubernetes = without_kubernetes
    root = Draft({GROUPS: copy.deepcopy(spec.groups)}, ledger)
    cluster = Draft(copy.deepcopy(spec.cluster), ledger)

    if not check.check_basics(spec, ledger):  # nothing can be decided without a cloud, zones and roles
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
    rendered = components.render_all(cluster, root, version)
    check.check_files(cluster, root, rendered)
    if not ledger.problems:  # otherwise every flag derived from a wrong value would be reported as changed
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
    text = cluster.decide(
        "kubernetesVersion", str(versions.DEFAULT), "the newest version that all end-to-end tests run on"
    )
    version = versions.parse(text) or versions.DEFAULT
    ledger.for_reading = spec.translated and version < versions.OLDEST
    return version


def decide_places(cluster: Draft, root: Draft, cloud: str) -> list[str]:
    """Zones, region, and the number of masters and nodes: given, or derived from subnets, groups and members."""
    subnets = cluster.get("subnets") or {}
    by_subnet = [each["zone"] for each in subnets.values() if "zone" in each]
    by_group = [zone for _, each in root.each(GROUPS) for zone in each.get("zones") or []]
    regional = any("region" in each for each in subnets.values())
    if by_subnet and not cluster.has("zones") and not (regional and by_group):
        cluster.decide("zones", list(dict.fromkeys(by_subnet)), "the zones of the subnets", cluster.at("subnets"))
    if by_group and not cluster.has("zones"):
        cluster.decide("zones", list(dict.fromkeys(by_group)), "the zones of the groups", GROUPS)
    if by_name := network.zones_in_names(cloud, cluster.tree):
        of = cluster.at("etcdClusters")
        cluster.decide("zones", by_name, "the groups of the etcd members are named after them", of)
    because = f"{cloud} has no zones"
    zones = cluster.decide("zones", groups.DEFAULT_ZONES.get(cloud, []), because, cluster.at("cloud"))
    regions = {region for zone in zones if (region := network.region_of(cloud, zone))}
    if len(regions) == 1:
        cluster.decide("region", regions.pop(), "the region of the zones", cluster.at("zones"))
    _count(cluster, root, "masters", "Master", 3, "the cluster survives the loss of any one")
    spare = 0 if cloud in groups.DEFAULT_ZONES else 2
    because = "pods survive the loss of one" if spare else "the inventory lists the nodes, if there are any"
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
    cluster.decide("clusterDNSDomain", "cluster.local", "the usual domain")


def decide_store(cluster: Draft, name: str, store: str | None) -> None:
    if store:
        cluster.decide("configBase", f"{store.rstrip('/')}/{name}", "the store it is written to", "metadata.name")
    base, of = etcd.in_store(cluster)
    cluster.decide("keyStore", f"{base}pki", "next to the configuration", *of)
    cluster.decide("secretStore", f"{base}secrets", "next to the configuration", *of)


def decide_topology(cluster: Draft, name: str) -> None:
    topology = cluster.under("topology")
    topology.decide("masters", "public", "machines have addresses of their own")
    topology.decide("nodes", topology.get("masters"), "same as the masters", topology.at("masters"))
    hidden = name.endswith(".k8s.local")
    because = "a public DNS zone"
    if hidden:
        because = "no DNS zone can have this name; machines compute the records themselves"
    topology.under("dns").decide("type", "None" if hidden else "Public", because, "metadata.name")
    networking = cluster.under("networking")
    networking.decide("plugin", "kubenet", "a bridge on each node and routes between them: nothing to install")
    cluster.decide("api", {"dns": {}}, "the masters' addresses are published in DNS")
    api = cluster.under("api")
    if isinstance(api.get("loadBalancer"), dict):
        balancer = api.under("loadBalancer")
        balancer.decide("type", "Public", "users reach it from outside")
        balancer.decide("useForInternalApi", False, "machines find masters by DNS, which recovers faster")
    for field, who in (("sshAccess", "SSH"), ("kubernetesApiAccess", "the API")):
        cluster.decide(field, ["0.0.0.0/0"], f"any address may connect to {who}; keys and certificates control access")
    cluster.decide("nodePortAccess", [], "node ports are closed to the outside")
    cluster.decide("authorization", "RBAC", "only granted permissions are allowed")
