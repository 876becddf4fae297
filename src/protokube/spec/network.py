"""Networks, names and who may reach them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.fields import at_least, one_of, said

PLUGINS = (
    "kubenet", "cni", "amazonvpc", "calico", "canal", "cilium", "external", "flannel", "gce",
    "kindnet", "kopeio", "kube-router", "weave",
)  # fmt: skip
"""Networks a cluster can be told to expect. `kubenet`: a bridge per node, with routes kept by us or by the cloud."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnet:
    """A part of the network in one zone (or, on GCE, in one region)."""

    zone: str | None = said("The zone it lies in")
    region: str | None = said("The region it lies in, where subnets span zones")
    type: str = said("Who may reach it", check=one_of("Public", "Private", "Utility", "DualStack"))
    cidr: str | None = said("Its addresses", name="cidr")
    ipv6_cidr: str | None = said("Its IPv6 addresses", name="ipv6CIDR")
    id: str | None = said("The subnet that exists already")
    egress: str | None = said("The NAT gateway or instance that carries its traffic out")
    public_ip: str | None = said("The address its NAT gateway shows to the world", name="publicIP")
    additional_routes: list[dict[str, Any]] | None = said("Routes beside the usual ones")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bastion:
    """The one machine of a private cluster that answers SSH from outside."""

    bastion_public_name: str | None = said("Its name in DNS")
    idle_timeout_seconds: int | None = said("When an idle connection is cut", check=at_least(1, 4000))
    load_balancer: dict[str, Any] | None = said("Its balancer")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyDNS:
    """Whether the cluster's zone is for everybody to see."""

    type: str = said("Who can look names up", check=one_of("Public", "Private", "None"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Which machines have addresses that the world can reach."""

    masters: str = said("Where masters stand", check=one_of("public", "private"))
    nodes: str = said("Where nodes stand", check=one_of("public", "private"))
    dns: TopologyDNS = said("Who can look the cluster's names up")
    bastion: Bastion | None = said("A way in by SSH")


@dataclass(frozen=True, slots=True, kw_only=True)
class Networking:
    """What carries packets between pods."""

    plugin: str = said("The pod network", check=one_of(*PLUGINS))
    options: dict[str, Any] | None = said("Kept as given for the network's own add-on")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBalancer:
    """The cloud's balancer in front of the API servers."""

    type: str = said("Who may reach it", check=one_of("Public", "Internal"))
    class_: str | None = said("AWS: its generation", name="class", check=one_of("Classic", "Network"))
    idle_timeout_seconds: int | None = said("When an idle connection is cut", check=at_least(1, 4000))
    additional_security_groups: list[str] | None = said("AWS: groups it also belongs to")
    security_group_override: str | None = said("AWS: the group it has instead of ours")
    use_for_internal_api: bool = said("Whether `api.internal` points at it too")
    ssl_certificate: str | None = said("AWS: the certificate it shows")
    ssl_policy: str | None = said("AWS: the policy of its listener")
    cross_zone_load_balancing: bool | None = said("Whether it spreads over zones")
    subnets: list[dict[str, Any]] | None = said("The subnets it stands in")
    access_log: dict[str, Any] | None = said("Where it writes who called")


@dataclass(frozen=True, slots=True, kw_only=True)
class API:
    """How the API is reached from outside: by the masters' own addresses in DNS, or by a balancer."""

    dns: dict[str, Any] | None = said("The masters' addresses stand in DNS")
    load_balancer: LoadBalancer | None = said("A balancer of the cloud stands before them")


@dataclass(frozen=True, slots=True, kw_only=True)
class HTTPProxy:
    """A proxy that machines must use to reach the outside."""

    host: str | None = said("Its name or address")
    port: int | None = said("Its port", check=at_least(1, 65535))


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressProxy:
    """How machines reach the outside where they may not do so directly."""

    http_proxy: HTTPProxy | None = said()
    excludes: str | None = said("What is reached without it, separated by commas")
