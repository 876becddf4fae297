"""Before a value of ours goes: ask for the very object that wanted it.

A list can be empty, cut short or out of date, and look as good as any other. The object itself cannot: either the
server shows it, and then it is judged anew, or the server says that there is none. An object that still asks for the
name and only has no address at the moment keeps its last one for a while: a balancer or a node that loses its address
for a minute must not take a name out of the world.

What the masters' agents left at the names of the API has no object of its own. There it is asked whether anybody still
has the address: first the API servers, who keep theirs in one object that is either shown whole or not at all.
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
"""Seconds for which a value stays whose object asks for the name and has nothing to answer."""


class Objects(Protocol):
    """Single objects, asked for now. TryLater if the server does not answer, or serves another cluster than before."""

    def source(self, key: str) -> Source | None: ...

    def node(self, name: str) -> NodeTarget | None: ...

    def serves(self, address: str) -> bool:
        """Whether an API server of this cluster is at the address, by their own word."""

    def who_has(self, name: str, address: str) -> str:
        """The node that has the address, or the pod of the system that asks for the name with it, listed anew."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a value stays though no list asks for it."""

    why: str
    lists_lie: bool = False
    """The object is there and differs from the one in the list: the list is to be read again."""


@dataclass(slots=True)
class Look:
    """One look, at each object once."""

    objects: Objects
    sources: Mapping[str, Source]
    nodes: Mapping[str, NodeTarget]
    """As the lists have them."""
    _sources: dict[str, Source | None] = field(default_factory=dict)
    _nodes: dict[str, NodeTarget | None] = field(default_factory=dict)
    _listed_nodes: Nodes | None = None

    def doubt(self, line: Owned, absent_for: float) -> Doubt | None:
        """None if the value may go."""
        key, _, target = line.mark.by.partition(">")
        if key == INHERITED:
            return self._held(line)
        if key == ADOPTED or (source := self._source(key)) is None:
            return None
        behind = {name: self._node(name) for name in _nodes_behind(line.name, source, target)}
        differ = {name: node for name, node in behind.items() if node != self.nodes.get(name)}
        lists_lie = bool(differ) or source != self._listed(key)
        nodes = self._indexed(differ)
        asks = [ask for ask in source.asks if ask.name == line.name]
        found = [one.want for ask in asks for one in values_of(source, ask, nodes)]
        if lists_lie and any((one.type, one.value) == (line.mark.type, line.mark.value) for one in found):
            return Doubt(f"{line.mark.by} is there and asks for it, though the list says something else", True)
        if asks and not found and absent_for < PATIENCE:
            why = f"{key} asks for the name and has no address now: the last one stays for {PATIENCE:.0f} s"
            return Doubt(why, lists_lie)
        return None

    def _held(self, line: Owned) -> Doubt | None:
        """Why an address stays that the agents left; a list that shows who has it is believed, one that does not is
        not."""
        address = line.mark.value
        if line.mark.type not in FAMILIES:
            return None
        for node in self.nodes.values():
            if address in (*node.internal, *node.external):
                return Doubt(f"{NODE}{node.name} has that address")
        if self.objects.serves(address):
            return Doubt("an API server is there")
        if who := self.objects.who_has(line.name, address):
            return Doubt(f"{who} has that address, though the list says something else", True)
        return None

    def _indexed(self, differ: Mapping[str, NodeTarget | None]) -> Nodes:
        """The nodes as they are, where they are not as the list has them."""
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
    """The nodes that have a say in what the object gets: itself, the one whose address it is, the one it runs on."""
    keys = [key for key in (source.key, target) if key.startswith(NODE)]
    hosts = [ask.target.node for ask in source.asks if ask.name == name and isinstance(ask.target, HostAddress)]
    return sorted({*(key.removeprefix(NODE) for key in keys), *hosts})
