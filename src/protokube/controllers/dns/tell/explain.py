"""Explain why a name has the records that it has, or none: follow it from the objects that ask for it to the zone.

Each step of the controller knows only its own reasons. This module runs all of them for one name, with the same
functions as the controller, so that the explanation is what it would do. Pure, except for the check whether an object
that no list shows is really gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from protokube.controllers.dns import NodeTarget, Problem, Source, Value, View
from protokube.controllers.dns.decide.desired import desired, index, values_of
from protokube.controllers.dns.decide.routing import Routed, route
from protokube.controllers.dns.decide.zonerules import Managed
from protokube.controllers.dns.read.agentnames import Names
from protokube.controllers.dns.read.annotations import Wrongs, names_by_view, names_of
from protokube.controllers.dns.read.nodes import node_target
from protokube.controllers.dns.read.objects import Ingress, Node, Object, Pod, Service
from protokube.controllers.dns.read.sources import (
    FINISHED,
    INGRESS_VIEW,
    ingress_source,
    key_of,
    pod_source,
    service_source,
)
from protokube.records import Record
from protokube.records.names import inside
from protokube.records.owners import Owned
from protokube.records.zones import Zone, horizon_of

Doubts = Callable[[Owned], str]
"""Why a value stays although no listed object asks for it; empty if it may be removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    """Everything that the command read, once."""

    objects: Sequence[Object]
    managed: Managed
    agents: Names = field(default_factory=Names)
    records: Mapping[Zone, Sequence[Record]] = field(default_factory=dict)
    """The records of the zones that hold the name."""
    troubles: Mapping[Zone, str] = field(default_factory=dict)
    """Why a zone could not be read."""

    @property
    def sources(self) -> dict[str, Source]:
        """Without those of nodes."""
        found = [source_of(item) for item in self.objects if not isinstance(item, Node)]
        return {source.key: source for source in found if source is not None}

    @property
    def nodes(self) -> dict[str, NodeTarget]:
        return {item.metadata.name: node_target(item) for item in self.objects if isinstance(item, Node)}

    @property
    def routed(self) -> Routed:
        wanted = desired(self.sources.values(), self.nodes.values())
        return route(wanted, self.managed, reserved=self.agents.reserved, members=self.agents.members)

    def zones_of(self, name: str) -> tuple[Zone, ...]:
        horizon = horizon_of(name, self.managed.horizons)
        return horizon.zones if horizon else ()


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Asking:
    """One object that contains the name, whether it gets it or not."""

    source: str
    views: tuple[View, ...]
    by_rule: bool
    """The name is the host of an ingress rule, not in an annotation."""
    gives: tuple[Value, ...]
    why: tuple[str, ...]
    """Why the object does not get the name."""


def source_of(item: Object) -> Source | None:
    if isinstance(item, Pod):
        return pod_source(item)
    if isinstance(item, Service):
        return service_source(item)
    return ingress_source(item) if isinstance(item, Ingress) else node_target(item).source


def askings(seen: Everything, name: str) -> tuple[Asking, ...]:
    """The objects that ask for the name, the values that result, and why there are none."""
    routed, nodes = seen.routed, index(seen.nodes.values())
    problems: list[Problem] = [*routed.problems, *routed.reserved]
    found: list[Asking] = []
    for item in seen.objects:
        if not (views := tuple(view for view, names in written(item).items() if name in names)):
            continue
        key, source = key_of(type(item).__name__.lower(), item.metadata), source_of(item)
        asks = [ask for ask in source.asks if ask.name == name] if source else []
        given = {each.want for ask in asks if source for each in values_of(source, ask, nodes)}
        why = [each.why for each in problems if (each.source, each.name) == (key, name)]
        why += _why_nothing(item, source, asked=bool(asks), pending=any(ask.target is None for ask in asks))
        found.append(
            Asking(
                source=key,
                views=views,
                by_rule=isinstance(item, Ingress),
                gives=tuple(sorted(Value(want.type, want.value) for want in given)),
                why=tuple(dict.fromkeys(why)),
            )
        )
    return tuple(sorted(found))


def written(item: Object) -> dict[View, tuple[str, ...]]:
    """All names that an object contains, whether they count or not."""
    if isinstance(item, Ingress):
        rules = (item.spec.rules if item.spec else None) or ()
        return {INGRESS_VIEW: names_of((rule.host or "" for rule in rules), Wrongs())}
    return names_by_view(item.metadata.annotations, Wrongs())


def names_written(seen: Everything) -> set[str]:
    return {name for item in seen.objects for names in written(item).values() for name in names}


def left_alone(seen: Everything, name: str) -> Iterator[tuple[Zone, str]]:
    """Zones that would hold the name and that we do not manage."""
    return ((zone, why) for zone, why in seen.managed.left if inside(name, zone.name))


def _why_nothing(item: Object, source: Source | None, *, asked: bool, pending: bool) -> Iterator[str]:
    if not isinstance(item, Node) and item.metadata.deletion_timestamp is not None:
        yield "it is being deleted, so it asks for nothing any more"
    elif isinstance(item, Pod) and item.status and item.status.phase in FINISHED:
        yield f"it has ended ({item.status.phase})"
    elif pending:
        unscheduled = isinstance(item, Pod) and not (item.spec and item.spec.node_name)
        yield "it is on no node yet" if unscheduled else "it has no address yet"
    elif source is not None and not asked:
        yield from source.wrong
