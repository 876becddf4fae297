"""Everything that can ask for a name, as the API server tells it, and whether that is all there is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from protokube.controllers.decoding import Kind, reader
from protokube.controllers.dns import NodeTarget, Source
from protokube.controllers.dns.read.agentnames import AgentNames, Lease, Names, Told, told_by
from protokube.controllers.dns.read.reading import read_ingress, read_node, read_pod, read_service
from protokube.controllers.reflector import Reflector, Snapshot, WatchApi
from protokube.records.api import LEASE

CORE, NETWORKING = "/api/v1", "/apis/networking.k8s.io/v1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All objects at one moment."""

    sources: Mapping[str, Source]
    """By their keys."""
    nodes: Mapping[str, NodeTarget]
    agents: Names
    ready: bool
    """Every kind was listed completely at least once."""
    whole: bool
    """And every one is kept up: what is not here is not there."""
    trouble: str
    """Why not."""


class Watching:
    """One reflector for each kind; `look` at any time, from any thread."""

    def __init__(
        self,
        server: WatchApi,
        changed: Callable[[], None],
        *,
        namespace: str = "",
        ingresses: bool = False,
        **options: Any,
    ) -> None:
        inside = f"/namespaces/{namespace}" if namespace else ""

        def of(name: str, path: str, read: Callable[[Any], T | None], **query: str) -> Reflector[T]:
            return Reflector(server, Kind(name=name, path=path, read=read, query=query), changed, **options)

        self._sources: dict[str, Reflector[Source]] = {
            "pod": of("pods", f"{CORE}{inside}/pods", read_pod),
            "service": of("services", f"{CORE}{inside}/services", read_service),
        }
        if ingresses:
            path = f"{NETWORKING}{inside}/ingresses"
            self._sources["ingress"] = of("ingresses", path, read_ingress)
        self._nodes: Reflector[NodeTarget] = of("nodes", f"{CORE}/nodes", read_node)
        self._lease: Reflector[Told] = of(
            "the agents' lease", LEASES, reader(Lease, told_by), fieldSelector=f"metadata.name={LEASE}"
        )
        self._agents = AgentNames()

    @property
    def reflectors(self) -> tuple[Reflector[Any], ...]:
        return (*self._sources.values(), self._nodes, self._lease)

    def start(self, stop: threading.Event) -> list[threading.Thread]:
        threads = [threading.Thread(target=each.run, args=(stop,), daemon=True) for each in self.reflectors]
        for thread in threads:
            thread.start()
        return threads

    def look(self) -> Seen:
        kinds = {kind: each.snapshot() for kind, each in self._sources.items()}
        nodes, lease = self._nodes.snapshot(), self._lease.snapshot()
        told = next(iter(lease.items.values()), None)
        every: list[Snapshot[Any]] = [*kinds.values(), nodes, lease]
        return Seen(
            sources={source.key: source for seen in kinds.values() for source in seen.items.values()},
            nodes=nodes.items,
            agents=self._agents.look(told, in_touch=lease.in_touch, now=time.monotonic()),
            ready=all(seen.lists for seen in every),
            whole=all(seen.in_touch for seen in every),
            trouble="; ".join(dict.fromkeys(seen.trouble for seen in every if not seen.in_touch)),
        )

    def relist(self) -> None:
        """Somebody has seen that a list is wrong."""
        for each in self.reflectors:
            each.relist()
