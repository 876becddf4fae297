"""Pods, nodes, services and ingresses as the API server sends them: only the fields that we use.

The decoder skips all other fields without building objects: a pod of 3 kB that asks for no name leaves nothing in
memory. Every field that the API server may omit or send as null is optional here.
"""

from __future__ import annotations

from msgspec import Struct, field


class Annotations(Struct, frozen=True, gc=False):
    """Our two annotations only; others may be long."""

    external: str | None = field(default=None, name="dns.alpha.kubernetes.io/external")
    internal: str | None = field(default=None, name="dns.alpha.kubernetes.io/internal")


class Metadata(Struct, frozen=True, gc=False, rename="camel"):
    name: str
    namespace: str | None = None
    uid: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    annotations: Annotations | None = None


class NodeMetadata(Metadata, frozen=True, gc=False, rename="camel"):
    labels: dict[str, str] | None = None


class PodSpec(Struct, frozen=True, gc=False, rename="camel"):
    host_network: bool | None = None
    node_name: str | None = None


class PodAddress(Struct, frozen=True, gc=False):
    ip: str | None = None


class PodStatus(Struct, frozen=True, gc=False):
    phase: str | None = None
    address: str | None = field(default=None, name="podIP")
    addresses: tuple[PodAddress, ...] | None = field(default=None, name="podIPs")


class Pod(Struct, frozen=True, gc=False):
    metadata: Metadata
    spec: PodSpec | None = None
    status: PodStatus | None = None


class NodeAddress(Struct, frozen=True, gc=False):
    type: str | None = None
    address: str | None = None


class NodeStatus(Struct, frozen=True, gc=False):
    addresses: tuple[NodeAddress, ...] | None = None


class Node(Struct, frozen=True, gc=False):
    metadata: NodeMetadata
    status: NodeStatus | None = None


class Point(Struct, frozen=True, gc=False):
    """One address of a load balancer."""

    ip: str | None = None
    hostname: str | None = None


class Balancer(Struct, frozen=True, gc=False):
    ingress: tuple[Point, ...] | None = None


class BalancerStatus(Struct, frozen=True, gc=False, rename="camel"):
    load_balancer: Balancer | None = None


class ServiceSpec(Struct, frozen=True, gc=False):
    type: str | None = None


class Service(Struct, frozen=True, gc=False):
    metadata: Metadata
    spec: ServiceSpec | None = None
    status: BalancerStatus | None = None


class IngressRule(Struct, frozen=True, gc=False):
    host: str | None = None


class IngressSpec(Struct, frozen=True, gc=False):
    rules: tuple[IngressRule, ...] | None = None


class Ingress(Struct, frozen=True, gc=False):
    """The same in networking.k8s.io/v1, networking.k8s.io/v1beta1 and extensions/v1beta1."""

    metadata: Metadata
    spec: IngressSpec | None = None
    status: BalancerStatus | None = None


Object = Pod | Node | Service | Ingress


class EndpointSubset(Struct, frozen=True, gc=False, rename="camel"):
    addresses: tuple[PodAddress, ...] | None = None
    not_ready_addresses: tuple[PodAddress, ...] | None = None


class Endpoints(Struct, frozen=True, gc=False):
    metadata: Metadata
    subsets: tuple[EndpointSubset, ...] | None = None
