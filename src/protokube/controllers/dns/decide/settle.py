"""Settle conflicts: which objects get a name that not all of them can share.

Addresses of many objects can share one name; a CNAME excludes every other value, even a second CNAME. The oldest object
wins, so that no object loses a name to a newer one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from protokube.controllers.dns import Problem
from protokube.controllers.dns.decide.desired import RequestedValue
from protokube.records.owners import Want


def settle(asked: Iterable[RequestedValue], *, top: str = "") -> tuple[tuple[Want, ...], tuple[Problem, ...]]:
    """The values that names in one zone should have, without duplicates, sorted; and the requests that lose.

    Of several objects that ask for the same value, the oldest is recorded: newer ones change nothing. `top` is the
    zone's own name.
    """
    wants: list[Want] = []
    problems: set[Problem] = set()
    by_name: defaultdict[str, list[RequestedValue]] = defaultdict(list)
    for one in asked:
        by_name[one.want.name].append(one)
    for name in sorted(by_name):
        rivals = sorted(by_name[name], key=_seniority)
        if name == top:
            aliases = [one for one in rivals if one.want.type == "CNAME"]
            problems.update(_problem(one, "a CNAME cannot stand at the top of a zone") for one in aliases)
            rivals = [one for one in rivals if one.want.type != "CNAME"]
        if not rivals:
            continue
        winner, *_ = rivals
        having = [one for one in rivals if _can_coexist(one.want, winner.want)]
        wants += sorted(_each_once(having))
        why = f"{winner.source} was there first and has {winner.want.type} {winner.want.value} there"
        problems.update(_problem(one, why) for one in rivals if not _can_coexist(one.want, winner.want))
    return tuple(wants), tuple(sorted(problems))


def _seniority(one: RequestedValue) -> tuple[str, str, str, str, str]:
    return one.created, one.source, one.want.type, one.want.value, one.want.by


def _can_coexist(want: Want, winner: Want) -> bool:
    """Whether a value can share the name with that of the winner."""
    if "CNAME" in (want.type, winner.type):
        return (want.type, want.value) == (winner.type, winner.value)
    return True


def _each_once(having: Collection[RequestedValue]) -> list[Want]:
    """The oldest request for each value."""
    eldest: dict[tuple[str, str], Want] = {}
    for one in having:
        eldest.setdefault((one.want.type, one.want.value), one.want)
    return list(eldest.values())


def _problem(loser: RequestedValue, why: str) -> Problem:
    return Problem(source=loser.source, name=loser.want.name, why=f"{loser.want.type} {loser.want.value}: {why}")
