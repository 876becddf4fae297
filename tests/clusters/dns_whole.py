"""The whole decision in one function: from objects and zones to the values that each zone should hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from protokube.controllers.dns import NodeTarget, Source
from protokube.controllers.dns.decide.desired import desired
from protokube.controllers.dns.decide.routing import Routed, route
from protokube.controllers.dns.decide.zonerules import Rule, choose
from protokube.controllers.dns.read.nodes import node_target
from protokube.controllers.dns.read.objects import Ingress, Object, Pod, Service
from protokube.controllers.dns.read.sources import ingress_source, pod_source, service_source
from protokube.records.zones import Zone


def whole(
    objects: Iterable[Object],
    zones: Collection[Zone],
    rules: Sequence[Rule],
    *,
    reserved: Collection[str] = (),
    members: Collection[str] = (),
) -> Routed:
    sources: list[Source | None] = []
    nodes: list[NodeTarget] = []
    for item in objects:
        if isinstance(item, Pod):
            sources.append(pod_source(item))
        elif isinstance(item, Service):
            sources.append(service_source(item))
        elif isinstance(item, Ingress):
            sources.append(ingress_source(item))
        else:
            nodes.append(node_target(item))
    return route(desired(filter(None, sources), nodes), choose(zones, rules), reserved=reserved, members=members)
