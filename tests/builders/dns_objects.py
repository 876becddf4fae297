"""Objects as the API server writes them, with what a test does not care about filled in; and wants as lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from protokube.controllers.dns import NodeTarget, Source
from protokube.controllers.dns.read.nodes import node_target
from protokube.controllers.dns.read.objects import Ingress, Node, Object, Pod, Service
from protokube.controllers.dns.read.sources import ingress_source, pod_source, service_source
from protokube.records.owners import Want

KINDS: dict[str, type[Object]] = {"Pod": Pod, "Node": Node, "Service": Service, "Ingress": Ingress}
FIRST, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
Document = dict[str, Any]


def read_object(document: Mapping[str, Any]) -> Object:
    found: Object = msgspec.json.decode(json.dumps(document), type=KINDS[document["kind"]])
    return found


def source_of(document: Document) -> Source | None:
    item = read_object(document)
    if isinstance(item, Pod):
        return pod_source(item)
    if isinstance(item, Node):
        return node_target(item).source
    return ingress_source(item) if isinstance(item, Ingress) else service_source(item)


def a_source(document: Document) -> Source:
    found = source_of(document)
    assert found is not None
    return found


def a_target(document: Document) -> NodeTarget:
    item = read_object(document)
    assert isinstance(item, Node)
    return node_target(item)


def a_pod(
    name: str = "web",
    *,
    addresses: Sequence[str] = ("10.0.0.1",),
    node: str = "n1",
    host_network: bool = True,
    phase: str = "Running",
    **more: str | None,
) -> Document:
    status: Document = {"phase": phase}
    if addresses:
        status |= {"podIP": addresses[0], "podIPs": [{"ip": address} for address in addresses]}
    spec = {"hostNetwork": host_network} | ({"nodeName": node} if node else {})
    return {"kind": "Pod", "metadata": _metadata(name, **more), "spec": spec, "status": status}


def a_service(
    name: str = "web", kind: str = "LoadBalancer", *points: Mapping[str, str], **more: str | None
) -> Document:
    metadata = _metadata(name, **more)
    return {"kind": "Service", "metadata": metadata, "spec": {"type": kind}, "status": _balancer(points)}


def an_ingress(
    name: str = "web", hosts: Sequence[str] = (), *points: Mapping[str, str], **more: str | None
) -> Document:
    spec: Document = {"rules": [{"host": host} if host else {"http": {"paths": []}} for host in hosts]}
    return {"kind": "Ingress", "metadata": _metadata(name, **more), "spec": spec, "status": _balancer(points)}


def a_node(
    name: str = "n1",
    *,
    internal: Sequence[str] = ("10.0.0.1",),
    external: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    **more: str | None,
) -> Document:
    addresses = [{"type": "Hostname", "address": name}]
    addresses += [{"type": "InternalIP", "address": address} for address in internal]
    addresses += [{"type": "ExternalIP", "address": address} for address in external]
    metadata = _metadata(name, **more) | {"labels": dict(labels or {})}
    del metadata["namespace"]
    return {"kind": "Node", "metadata": metadata, "status": {"addresses": addresses}}


def lines(wants: Iterable[Want]) -> list[str]:
    return [f"{want.name} {want.type} {want.value} {want.by}" for want in wants]


def _metadata(
    name: str,
    *,
    internal_names: str | None = None,
    external_names: str | None = None,
    created: str | None = FIRST,
    deleted: str | None = None,
) -> Document:
    said = {"internal": internal_names, "external": external_names}
    annotations = {f"dns.alpha.kubernetes.io/{view}": text for view, text in said.items() if text is not None}
    annotations["example.com/else"] = "somebody else's"
    found: Document = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": annotations}
    return found | {"creationTimestamp": created} | ({"deletionTimestamp": deleted} if deleted else {})


def _balancer(points: Iterable[Mapping[str, str]]) -> Document:
    return {"loadBalancer": {"ingress": [dict(point) for point in points]}}
