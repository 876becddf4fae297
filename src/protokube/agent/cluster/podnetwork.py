"""The pod network of this node, once the controller manager assigned its pod CIDR; and routes to all other nodes' pods.

Without an answer from the API server nothing changes: traffic between pods needs no API server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from protokube.agent.cache import StepCache, is_recent
from protokube.agent.cluster.routes_plan import Node, node, plan
from protokube.agent.cluster.steps import is_serving
from protokube.agent.round import Round
from protokube.host.files import write_atomic
from protokube.manifests import cni

STEP = "podnetwork"
EVERY = 10.0
"""Seconds between two lists of all nodes."""
SOON, PATIENCE = 1.0, 60.0
"""Seconds: between two looks for the range of our node, which is not Ready without it; how long we look that often."""
NODES = "/api/v1/nodes"


@dataclass(slots=True)
class PodNetworkCache(StepCache):
    settled: float | None = None
    """When all routes were last correct."""


def sync(round_: Round) -> None:
    edges = round_.edges
    if not round_.wanted.pod_network or edges.kube is None or edges.routes is None:
        return
    cache, now = edges.cache.of(PodNetworkCache), edges.clock.monotonic()
    if is_recent(cache.settled, now, EVERY):
        return
    if cache.settled is None and not is_serving(round_):
        # While it starts, it accepts connections and does not answer: each request would delay etcd's steps by seconds.
        round_.waiting(STEP, "", "the API server of this machine is not ready yet")
        return
    nodes = read_nodes(edges.kube.get(NODES, resourceVersion="0"))  # from the API server's watch cache: cheap
    own = next((each for each in nodes if each.name == edges.me.name), None)
    if own is None or not own.ranges:
        state = "has no range of pod addresses" if own else "is not registered"
        round_.waiting(STEP, "", f"the node {edges.me.name} {state} yet")
        if round_.waited(f"{STEP} ") < PATIENCE:
            round_.within(SOON)
        return
    _write(round_, own.ranges)
    _route(round_, nodes)
    cache.settled = now


def read_nodes(answer: Mapping[str, Any]) -> Sequence[Node]:
    return [node(each) for each in answer.get("items") or ()]


def _write(round_: Round, ranges: Sequence[str]) -> None:
    place = round_.edges.inside(cni.FILE)
    place.parent.mkdir(parents=True, exist_ok=True)
    if write_atomic(place, cni.network(ranges).encode()):
        round_.report.done(STEP, f"pods get addresses of {', '.join(ranges)}")


def _route(round_: Round, nodes: Sequence[Node]) -> None:
    edges = round_.edges
    assert edges.routes is not None
    if not round_.wanted.pod_ranges:  # launch data of an older version: an unknown range is no reason to remove routes
        round_.waiting(STEP, "", "the launch data name no pod ranges, so routes stay as they are")
        return
    chosen = plan(edges.routes.read(), nodes, edges.me.name, [edges.me.address], round_.wanted.pod_ranges)
    if chosen.remove or chosen.add:
        edges.routes.change(chosen.remove, chosen.add)
    for route in chosen.remove:
        round_.report.done(STEP, f"no longer {route.destination} via {route.via}")
    for route in chosen.add:
        round_.report.done(STEP, f"{route.destination} via {route.via}")
    for destination, reason in chosen.leave:
        round_.waiting(STEP, destination, reason)
