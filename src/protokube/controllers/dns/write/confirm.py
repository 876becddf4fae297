"""Confirm a removal: before a value of ours is deleted, read the object that asked for it.

A list can be empty, truncated or stale, and look like any other. A read of the single object cannot: either the server
returns it, and we decide again from that, or the server answers that it does not exist. An object that still asks for
the name and only has no address at the moment keeps its last one for a while: a load balancer or a node that loses its
address for a minute must not lose its name.

Values that the masters' agents left at the names of the API have no object of their own. For these we check whether
anything still has the address: first the API servers, whose addresses are in one object that is read whole or not at
all. They publish internal addresses; the agents' Lease has the internal address for each external one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from protokube.controllers.dns import HostAddress, NodeTarget, Source
from protokube.controllers.dns.decide.desired import Nodes, index, values_of
from protokube.records.api import FAMILIES
from protokube.records.onename import ADOPTED, INHERITED
from protokube.records.owners import Owned

NODE = "node/"
PATIENCE = 300.0
"""Seconds for which a value stays while its object asks for the name and has no address."""


class Objects(Protocol):
    """Uncached reads of single objects. TryLater if the server does not answer, or serves another cluster."""

    def source(self, key: str) -> Source | None: ...

    def node(self, name: str) -> NodeTarget | None: ...

    def serves(self, address: str) -> bool:
        """Whether an API server of this cluster publishes this address in the endpoints."""

    def who_has(self, name: str, address: str) -> str:
        """The node with this address, or the kube-system pod that asks for the name with it, from a new list."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a value stays although no listed object asks for it."""

    why: str
    lists_stale: bool = False
    """The object exists and differs from the one in the list: a relist is needed."""


@dataclass(slots=True)
class Look:
    """The confirmations of one round; reads each object at most once."""

    objects: Objects
    sources: Mapping[str, Source]
    nodes: Mapping[str, NodeTarget]
    """As the lists have them."""
    external: Mapping[str, str] = field(default_factory=dict)
    """Internal by external address of masters."""
    _sources: dict[str, Source | None] = field(default_factory=dict)
    _nodes: dict[str, NodeTarget | None] = field(default_factory=dict)
    _listed_nodes: Nodes | None = None

    def doubt(self, line: Owned, absent_for: float) -> Doubt | None:
        """Why the value must stay; None if it may be removed."""
        key, _, target = line.mark.by.partition(">")
        if key == INHERITED:
            return self._held(line)
        if key == ADOPTED or (source := self._source(key)) is None:
            return None
        behind = {name: self._node(name) for name in _nodes_behind(line.name, source, target)}
        differ = {name: node for name, node in behind.items() if node != self.nodes.get(name)}
        lists_stale = bool(differ) or source != self._listed(key)
        nodes = self._indexed(differ)
        asks = [ask for ask in source.asks if ask.name == line.name]
        found = [one.want for ask in asks for one in values_of(source, ask, nodes)]
        if lists_stale and any((one.type, one.value) == (line.mark.type, line.mark.value) for one in found):
            return Doubt(f"{line.mark.by} is there and asks for it, though the list says something else", True)
        if asks and not found and absent_for < PATIENCE:
            why = f"{key} asks for the name and has no address now: the last one stays for {PATIENCE:.0f} s"
            return Doubt(why, lists_stale)
        return None

    def _held(self, line: Owned) -> Doubt | None:
        """Why an address that the agents left must stay. A cached list can prove that it is in use, but not that it is
        unused."""
        address = line.mark.value
        if line.mark.type not in FAMILIES:
            return None
        internal = self.external.get(address, address)
        for node in self.nodes.values():
            if {address, internal} & {*node.internal, *node.external}:
                return Doubt(f"{NODE}{node.name} has that address")
        if self.objects.serves(internal):
            return Doubt("an API server is there")
        for each in dict.fromkeys((address, internal)):
            if who := self.objects.who_has(line.name, each):
                return Doubt(f"{who} has that address, though the list says something else", True)
        return None

    def _indexed(self, differ: Mapping[str, NodeTarget | None]) -> Nodes:
        """The listed nodes, with those that differ replaced by what was just read."""
        if self._listed_nodes is None:
            self._listed_nodes = index(self.nodes.values())
        if not differ:
            return self._listed_nodes
        return index(node for node in {**self.nodes, **differ}.values() if node is not None)

    def _listed(self, key: str) -> Source | None:
        if key.startswith(NODE):
            listed = self.nodes.get(key.removeprefix(NODE))
            return listed.source if listed else None
        return self.sources.get(key)

    def _source(self, key: str) -> Source | None:
        if key not in self._sources:
            self._sources[key] = self.objects.source(key)
        return self._sources[key]

    def _node(self, name: str) -> NodeTarget | None:
        if name not in self._nodes:
            self._nodes[name] = self.objects.node(name)
        return self._nodes[name]


def _nodes_behind(name: str, source: Source, target: str) -> list[str]:
    """The nodes that determine the values: the object itself, the node whose address it has, the one it runs on."""
    keys = [key for key in (source.key, target) if key.startswith(NODE)]
    hosts = [ask.target.node for ask in source.asks if ask.name == name and isinstance(ask.target, HostAddress)]
    return sorted({*(key.removeprefix(NODE) for key in keys), *hosts})
