"""Networks, DNS names, and who may reach them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.fields import at_least, one_of, spec_field

PLUGINS = (
    "kubenet", "cni", "amazonvpc", "calico", "canal", "cilium", "external", "flannel", "gce",
    "kindnet", "kopeio", "kube-router", "weave",
)  # fmt: skip
"""Supported pod networks. `kubenet`: a bridge per node, with routes maintained by the agents or by the cloud."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnet:
    """A part of the network in one zone (or, on GCE, in one region)."""

    zone: str | None = spec_field("The zone of the subnet")
    region: str | None = spec_field("The region of the subnet, where subnets span zones")
    type: str = spec_field("The type of the subnet", check=one_of("Public", "Private", "Utility", "DualStack"))
    cidr: str | None = spec_field("Its address range", name="cidr")
    ipv6_cidr: str | None = spec_field("Its IPv6 address range", name="ipv6CIDR")
    id: str | None = spec_field("An existing subnet to use")
    egress: str | None = spec_field("The NAT gateway or instance for its outgoing traffic")
    public_ip: str | None = spec_field("The public address of its NAT gateway", name="publicIP")
    additional_routes: list[dict[str, Any]] | None = spec_field("Additional routes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bastion:
    """The machine of a private cluster that is reachable by SSH from outside."""

    bastion_public_name: str | None = spec_field("Its DNS name")
    idle_timeout_seconds: int | None = spec_field("Idle timeout of connections", check=at_least(1, 4000))
    load_balancer: dict[str, Any] | None = spec_field("Its load balancer")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyDNS:
    """Whether the cluster's DNS zone is public."""

    type: str = spec_field(
        "The type of the DNS zone; None for a cluster without one", check=one_of("Public", "Private", "None")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Which machines have public addresses."""

    masters: str = spec_field("Whether masters are in public or private subnets", check=one_of("public", "private"))
    nodes: str = spec_field("Whether nodes are in public or private subnets", check=one_of("public", "private"))
    dns: TopologyDNS = spec_field("Who can resolve the cluster's DNS names")
    bastion: Bastion | None = spec_field("A bastion for SSH access")


@dataclass(frozen=True, slots=True, kw_only=True)
class Networking:
    """The pod network."""

    plugin: str = spec_field("The network plugin", check=one_of(*PLUGINS))
    options: dict[str, Any] | None = spec_field("Passed through unchanged to the network's add-on")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBalancer:
    """The cloud's load balancer in front of the API servers."""

    type: str = spec_field("Whether it is reachable from outside", check=one_of("Public", "Internal"))
    class_: str | None = spec_field("AWS: the class of load balancer", name="class", check=one_of("Classic", "Network"))
    idle_timeout_seconds: int | None = spec_field("Idle timeout of connections", check=at_least(1, 4000))
    additional_security_groups: list[str] | None = spec_field("AWS: additional security groups")
    security_group_override: str | None = spec_field("AWS: the security group to use instead of protokube's")
    use_for_internal_api: bool = spec_field("Whether `api.internal` also points to it")
    ssl_certificate: str | None = spec_field("AWS: the certificate it serves")
    ssl_policy: str | None = spec_field("AWS: the TLS policy of its listener")
    cross_zone_load_balancing: bool | None = spec_field("Whether it balances across zones")
    subnets: list[dict[str, Any]] | None = spec_field("The subnets in which it runs")
    access_log: dict[str, Any] | None = spec_field("Where it writes its access log")


@dataclass(frozen=True, slots=True, kw_only=True)
class API:
    """How the API is reached from outside: through DNS records of the masters' addresses, or a load balancer."""

    dns: dict[str, Any] | None = spec_field("The masters' addresses are published in DNS")
    load_balancer: LoadBalancer | None = spec_field("A load balancer of the cloud is in front of the masters")


@dataclass(frozen=True, slots=True, kw_only=True)
class HTTPProxy:
    """An HTTP proxy for outgoing connections of machines."""

    host: str | None = spec_field("Its name or address")
    port: int | None = spec_field("Its port", check=at_least(1, 65535))


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressProxy:
    """The proxy for outgoing connections, where machines may not connect directly."""

    http_proxy: HTTPProxy | None = spec_field()
    excludes: str | None = spec_field("Hosts and ranges that are reached without the proxy, separated by commas")
