"""Which zone each value goes to.

A name can be that of two zones: a private one hides the public one from the machines inside. So what is external goes
into the public zone, and also into the private one unless that name has an answer of its own there; what is internal
goes into the private one. Where there is only one zone, both views meet in it, and the values stand side by side.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from protokube.controllers.dns import Problem
from protokube.controllers.dns.decide.desired import Asked, Desired
from protokube.controllers.dns.decide.settle import settle
from protokube.controllers.dns.decide.zonerules import Managed
from protokube.controllers.dns.read.agentnames import is_member
from protokube.records.owners import Want
from protokube.records.zones import Horizon, Zone, horizon_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """What each managed zone is to hold of ours, also where that is nothing."""

    wants: dict[Zone, tuple[Want, ...]]
    problems: tuple[Problem, ...]
    reserved: tuple[Problem, ...]
    """What was asked for at names that belong to the agents: nothing is wrong, they answer there themselves."""
    pending: tuple[Problem, ...]
    homeless: frozenset[str] = frozenset()
    """Names that no zone of ours holds."""


def route(
    wanted: Desired, managed: Managed, *, reserved: Collection[str] = (), members: Collection[str] = ()
) -> Routed:
    """Give every value to the zones that it belongs to, and settle there who gets which name.

    `reserved` are the names that the agents look after now, `members` those of etcd members, which are always theirs.
    """
    into: dict[Zone, list[Asked]] = {zone: [] for zone in managed.zones}
    problems = set(wanted.problems)
    kept: set[Problem] = set()
    homeless: set[str] = set()
    theirs = frozenset(reserved)
    for one in wanted.asked:
        name = one.want.name
        if members and is_member(name, members):
            problems.add(Problem(source=one.source, name=name, why="this is a name of etcd's, and nobody else's"))
        elif name in theirs:
            kept.add(Problem(source=one.source, name=name, why="the masters' agents answer for this name themselves"))
        elif (horizon := horizon_of(name, managed.horizons)) is None:
            why = f"no zone we manage holds {name} (rules: {', '.join(map(str, managed.rules)) or 'none'})"
            problems.add(Problem(source=one.source, name=name, why=why))
            homeless.add(name)
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
        homeless=frozenset(homeless),
    )


def _zones(one: Asked, horizon: Horizon, inside: Collection[str]) -> Iterator[Zone]:
    public, private = horizon.public, horizon.private
    if public is None or private is None:
        yield from horizon.zones
    elif one.view == "internal":
        yield private
    else:
        yield public
        if one.want.name not in inside:
            yield private
