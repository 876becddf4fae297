"""From what objects ask for to the values that names should have: resolves aliases to the addresses of nodes.

Conflicts between two objects are not resolved here but in `settle`: whether two requests meet is known only after
`routing` has chosen the zone of each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from protokube.controllers.dns import Ask, HostAddress, NodeAlias, NodeTarget, Problem, Source, Value, View
from protokube.records.names import address_type
from protokube.records.owners import Want


@dataclass(frozen=True, slots=True, order=True)
class RequestedValue:
    """One value for a name in one view."""

    want: Want
    view: View
    created: str
    """When the requesting object was created."""

    @property
    def source(self) -> str:
        return source_of(self.want.by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """Everything that all objects ask for, sorted."""

    asked: tuple[RequestedValue, ...]
    inside: frozenset[str]
    """Names that an object asks for in the internal view, also those without a value at the moment."""
    problems: tuple[Problem, ...]
    pending: tuple[Problem, ...]
    """Requests that wait for an address: nothing is wrong yet."""

    @property
    def wants(self) -> tuple[Want, ...]:
        """Of both views, before conflicts are settled."""
        return tuple(one.want for one in self.asked)


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes, indexed for the lookup of aliases."""

    by_name: Mapping[str, NodeTarget]
    by_role: Mapping[str, tuple[NodeTarget, ...]]


def desired(sources: Iterable[Source], nodes: Iterable[NodeTarget]) -> Desired:
    """The values that names should have. A node's own requests come with `nodes`; a source with the same key wins."""
    known = index(nodes)
    every = {node.source.key: node.source for node in known.by_name.values() if node.source is not None}
    every |= {source.key: source for source in sources}
    asked: set[RequestedValue] = set()
    problems: set[Problem] = set()
    pending: set[Problem] = set()
    for source in every.values():
        problems.update(Problem(source=source.key, name="", why=why) for why in source.wrong)
        for ask in source.asks:
            if ask.target is None:
                pending.add(Problem(source=source.key, name=ask.name, why="it has no address yet"))
                continue
            asked.update(values_of(source, ask, known))
            if why := _why_nothing(ask.target, known):
                problems.add(Problem(source=source.key, name=ask.name, why=why))
    inside = frozenset(ask.name for source in every.values() for ask in source.asks if ask.view == "internal")
    return Desired(
        asked=tuple(sorted(asked, key=_order)),
        inside=inside,
        problems=tuple(sorted(problems)),
        pending=tuple(sorted(pending)),
    )


def index(nodes: Iterable[NodeTarget]) -> Nodes:
    by_name = {node.name: node for node in nodes}
    by_role: defaultdict[str, list[NodeTarget]] = defaultdict(list)
    for _, node in sorted(by_name.items()):
        for role in node.roles:
            by_role[role].append(node)
    return Nodes(by_name, {role: tuple(having) for role, having in by_role.items()})


def values_of(source: Source, ask: Ask, nodes: Nodes) -> Iterator[RequestedValue]:
    """The values that one request resolves to at the moment."""
    target = ask.target
    if isinstance(target, Value):
        yield _requested(source, ask, target.type, target.value, source.key)
    elif isinstance(target, HostAddress):
        if not _leaked(target, nodes):
            yield _requested(source, ask, target.type, target.value, source.key)
    elif isinstance(target, NodeAlias):
        for node in _meant(target, nodes):
            by = key if (key := f"node/{node.name}") == source.key else f"{source.key}>{key}"
            for address in node.addresses(target.view):
                yield _requested(source, ask, address_type(address), address, by)


def source_of(by: str) -> str:
    """The key of the requesting object, without the node whose address it got."""
    return by.partition(">")[0]


def _requested(source: Source, ask: Ask, type: str, value: str, by: str) -> RequestedValue:  # noqa: A002
    return RequestedValue(Want(name=ask.name, type=type, value=value, by=by), ask.view, source.created)


def _order(one: RequestedValue) -> tuple[str, ...]:
    """The same order as that of the fields; a tuple of strings sorts many times faster, and there may be 100,000."""
    want = one.want
    return want.name, want.type, want.value, want.by, one.view, one.created


def _meant(alias: NodeAlias, nodes: Nodes) -> tuple[NodeTarget, ...]:
    if alias.kind == "role":
        return nodes.by_role.get(alias.which, ())
    node = nodes.by_name.get(alias.which)
    return () if node is None else (node,)


def _leaked(address: HostAddress, nodes: Nodes) -> bool:
    """Whether the address is not one of its node's; a node that is unknown or reports no address does not count."""
    node = nodes.by_name.get(address.node)
    return node is not None and bool(node.internal) and address.value not in node.internal


def _why_nothing(target: Value | NodeAlias | HostAddress, nodes: Nodes) -> str:
    if isinstance(target, HostAddress) and _leaked(target, nodes):
        known = ", ".join(nodes.by_name[target.node].internal)
        return f"{target.value} is left out: node {target.node} says that its internal addresses are {known}"
    if isinstance(target, NodeAlias):
        meant = _meant(target, nodes)
        if not meant:
            return f"there is no node {'of the role ' if target.kind == 'role' else ''}{target.which}"
        if not any(node.addresses(target.view) for node in meant):
            lacking = (
                f"no node of the role {target.which} has" if target.kind == "role" else f"node {target.which} lacks"
            )
            return f"{lacking} an {target.view} address"
    return ""
