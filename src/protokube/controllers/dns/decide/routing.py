"""Route each value to its zones.

Two zones can have the same name: a private one hides the public one from the machines inside. So external values go
into the public zone, and also into the private one unless that name has internal values of its own; internal values go
into the private zone. If there is only one zone, it holds the values of both views side by side.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from protokube.controllers.dns import Problem
from protokube.controllers.dns.decide.desired import Desired, RequestedValue
from protokube.controllers.dns.decide.settle import settle
from protokube.controllers.dns.decide.zonerules import Managed
from protokube.controllers.dns.read.agentnames import is_member
from protokube.records.owners import Want
from protokube.records.zones import Horizon, Zone, horizon_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """Our values for each managed zone, including zones that get none."""

    wants: dict[Zone, tuple[Want, ...]]
    problems: tuple[Problem, ...]
    reserved: tuple[Problem, ...]
    """Requests for names that the agents manage: nothing is wrong, the agents publish these names themselves."""
    pending: tuple[Problem, ...]
    without_zone: frozenset[str] = frozenset()
    """Names that lie in no managed zone."""


def route(
    wanted: Desired, managed: Managed, *, reserved: Collection[str] = (), members: Collection[str] = ()
) -> Routed:
    """Assign every value to its zones, and settle conflicts within each zone.

    `reserved` are the names that the agents manage now; `members` those of etcd members, which are always theirs.
    """
    into: dict[Zone, list[RequestedValue]] = {zone: [] for zone in managed.zones}
    problems = set(wanted.problems)
    kept: set[Problem] = set()
    without_zone: set[str] = set()
    theirs = frozenset(reserved)
    for one in wanted.asked:
        name = one.want.name
        if members and is_member(name, members):
            problems.add(Problem(source=one.source, name=name, why="this name is reserved for an etcd member"))
        elif name in theirs:
            kept.add(Problem(source=one.source, name=name, why="the masters' agents answer for this name themselves"))
        elif (horizon := horizon_of(name, managed.horizons)) is None:
            why = f"no zone we manage holds {name} (rules: {', '.join(map(str, managed.rules)) or 'none'})"
            problems.add(Problem(source=one.source, name=name, why=why))
            without_zone.add(name)
        else:
            for zone in _zones(one, horizon, wanted.inside):
                into[zone].append(one)
    wants: dict[Zone, tuple[Want, ...]] = {}
    for zone, asked in sorted(into.items()):
        wants[zone], unsettled = settle(asked, top=zone.name)
        problems.update(unsettled)
    return Routed(
        wants=wants,
        problems=tuple(sorted(problems)),
        reserved=tuple(sorted(kept)),
        pending=wanted.pending,
        without_zone=frozenset(without_zone),
    )


def _zones(one: RequestedValue, horizon: Horizon, inside: Collection[str]) -> Iterator[Zone]:
    public, private = horizon.public, horizon.private
    if public is None or private is None:
        yield from horizon.zones
    elif one.view == "internal":
        yield private
    else:
        yield public
        if one.want.name not in inside:
            yield private
