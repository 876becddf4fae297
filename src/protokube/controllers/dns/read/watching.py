"""Watch every kind of object that can ask for a name; report whether the cache is complete."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from protokube.controllers.decoding import Kind, reader
from protokube.controllers.dns import NodeTarget, Source
from protokube.controllers.dns.read.agentnames import AgentLease, AgentNames, Lease, Names, agent_lease
from protokube.controllers.dns.read.reading import read_ingress, read_node, read_pod, read_service
from protokube.controllers.reflector import Reflector, Snapshot, WatchApi
from protokube.records.api import LEASE

CORE, NETWORKING = "/api/v1", "/apis/networking.k8s.io/v1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The contents of all caches at one moment."""

    sources: Mapping[str, Source]
    """By key."""
    nodes: Mapping[str, NodeTarget]
    agents: Names
    ready: bool
    """Every kind was listed completely at least once."""
    whole: bool
    """And every watch is healthy: an object that is missing here does not exist."""
    trouble: str
    """Why `whole` is False."""


class Watching:
    """One reflector for each kind; any thread may call `look` at any time."""

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
        self._lease: Reflector[AgentLease] = of(
            "the agents' lease", LEASES, reader(Lease, agent_lease), fieldSelector=f"metadata.name={LEASE}"
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
        current = next(iter(lease.items.values()), None)
        every: list[Snapshot[Any]] = [*kinds.values(), nodes, lease]
        return Seen(
            sources={source.key: source for seen in kinds.values() for source in seen.items.values()},
            nodes=nodes.items,
            agents=self._agents.look(current, in_touch=lease.in_touch, now=time.monotonic()),
            ready=all(seen.lists for seen in every),
            whole=all(seen.in_touch for seen in every),
            trouble="; ".join(dict.fromkeys(seen.trouble for seen in every if not seen.in_touch)),
        )

    def relist(self) -> None:
        """Relist every kind, because a list proved to be wrong."""
        for each in self.reflectors:
            each.relist()
