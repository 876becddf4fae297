"""Networks, names and who may reach them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.fields import at_least, one_of, spec_field

PLUGINS = (
    "kubenet", "cni", "amazonvpc", "calico", "canal", "cilium", "external", "flannel", "gce",
    "kindnet", "kopeio", "kube-router", "weave",
)  # fmt: skip
"""Networks a cluster can be told to expect. `kubenet`: a bridge per node, with routes kept by us or by the cloud."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnet:
    """A part of the network in one zone (or, on GCE, in one region)."""

    zone: str | None = spec_field("The zone it lies in")
    region: str | None = spec_field("The region it lies in, where subnets span zones")
    type: str = spec_field("Who may reach it", check=one_of("Public", "Private", "Utility", "DualStack"))
    cidr: str | None = spec_field("Its addresses", name="cidr")
    ipv6_cidr: str | None = spec_field("Its IPv6 addresses", name="ipv6CIDR")
    id: str | None = spec_field("The subnet that exists already")
    egress: str | None = spec_field("The NAT gateway or instance that carries its traffic out")
    public_ip: str | None = spec_field("The address its NAT gateway shows to the world", name="publicIP")
    additional_routes: list[dict[str, Any]] | None = spec_field("Routes beside the usual ones")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bastion:
    """The one machine of a private cluster that answers SSH from outside."""

    bastion_public_name: str | None = spec_field("Its name in DNS")
    idle_timeout_seconds: int | None = spec_field("When an idle connection is cut", check=at_least(1, 4000))
    load_balancer: dict[str, Any] | None = spec_field("Its balancer")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyDNS:
    """Whether the cluster's zone is for everybody to see."""

    type: str = spec_field("Who can look names up", check=one_of("Public", "Private", "None"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Which machines have addresses that the world can reach."""

    masters: str = spec_field("Where masters stand", check=one_of("public", "private"))
    nodes: str = spec_field("Where nodes stand", check=one_of("public", "private"))
    dns: TopologyDNS = spec_field("Who can look the cluster's names up")
    bastion: Bastion | None = spec_field("A way in by SSH")


@dataclass(frozen=True, slots=True, kw_only=True)
class Networking:
    """What carries packets between pods."""

    plugin: str = spec_field("The pod network", check=one_of(*PLUGINS))
    options: dict[str, Any] | None = spec_field("Kept as given for the network's own add-on")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBalancer:
    """The cloud's balancer in front of the API servers."""

    type: str = spec_field("Who may reach it", check=one_of("Public", "Internal"))
    class_: str | None = spec_field("AWS: its generation", name="class", check=one_of("Classic", "Network"))
    idle_timeout_seconds: int | None = spec_field("When an idle connection is cut", check=at_least(1, 4000))
    additional_security_groups: list[str] | None = spec_field("AWS: groups it also belongs to")
    security_group_override: str | None = spec_field("AWS: the group it has instead of ours")
    use_for_internal_api: bool = spec_field("Whether `api.internal` points at it too")
    ssl_certificate: str | None = spec_field("AWS: the certificate it shows")
    ssl_policy: str | None = spec_field("AWS: the policy of its listener")
    cross_zone_load_balancing: bool | None = spec_field("Whether it spreads over zones")
    subnets: list[dict[str, Any]] | None = spec_field("The subnets it stands in")
    access_log: dict[str, Any] | None = spec_field("Where it writes who called")


@dataclass(frozen=True, slots=True, kw_only=True)
class API:
    """How the API is reached from outside: by the masters' own addresses in DNS, or by a balancer."""

    dns: dict[str, Any] | None = spec_field("The masters' addresses stand in DNS")
    load_balancer: LoadBalancer | None = spec_field("A balancer of the cloud stands before them")


@dataclass(frozen=True, slots=True, kw_only=True)
class HTTPProxy:
    """A proxy that machines must use to reach the outside."""

    host: str | None = spec_field("Its name or address")
    port: int | None = spec_field("Its port", check=at_least(1, 65535))


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressProxy:
    """How machines reach the outside where they may not do so directly."""

    http_proxy: HTTPProxy | None = spec_field()
    excludes: str | None = spec_field("What is reached without it, separated by commas")
