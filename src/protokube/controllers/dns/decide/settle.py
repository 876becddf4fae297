"""Who gets a name that not all can have.

Addresses of many objects stand side by side at one name; beside a CNAME stands nothing, not even a second one. The
object that was made first has its way, so that nobody loses a name to somebody who comes later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from protokube.controllers.dns import Problem
from protokube.controllers.dns.decide.desired import Asked
from protokube.records.owners import Want


def settle(asked: Iterable[Asked], *, top: str = "") -> tuple[tuple[Want, ...], tuple[Problem, ...]]:
    """The values that names in one zone are to have, each once, sorted; and who does not get what it asked for.

    Of several objects that ask for one value, the first one made is put down: those that come later change nothing.
    `top` is the zone's own name.
    """
    wants: list[Want] = []
    problems: set[Problem] = set()
    by_name: defaultdict[str, list[Asked]] = defaultdict(list)
    for one in asked:
        by_name[one.want.name].append(one)
    for name in sorted(by_name):
        rivals = sorted(by_name[name], key=_seniority)
        if name == top:
            aliases = [one for one in rivals if one.want.type == "CNAME"]
            problems.update(_told(one, "a CNAME cannot stand at the top of a zone") for one in aliases)
            rivals = [one for one in rivals if one.want.type != "CNAME"]
        if not rivals:
            continue
        winner, *_ = rivals
        having = [one for one in rivals if _beside(one.want, winner.want)]
        wants += sorted(_each_once(having))
        why = f"{winner.source} was there first and has {winner.want.type} {winner.want.value} there"
        problems.update(_told(one, why) for one in rivals if not _beside(one.want, winner.want))
    return tuple(wants), tuple(sorted(problems))


def _seniority(one: Asked) -> tuple[str, str, str, str, str]:
    return one.created, one.source, one.want.type, one.want.value, one.want.by


def _beside(want: Want, winner: Want) -> bool:
    """Whether a value can stand at the name of the winner."""
    if "CNAME" in (want.type, winner.type):
        return (want.type, want.value) == (winner.type, winner.value)
    return True


def _each_once(having: Collection[Asked]) -> list[Want]:
    """The eldest of each value."""
    eldest: dict[tuple[str, str], Want] = {}
    for one in having:
        eldest.setdefault((one.want.type, one.want.value), one.want)
    return list(eldest.values())


def _told(loser: Asked, why: str) -> Problem:
    return Problem(source=loser.source, name=loser.want.name, why=f"{loser.want.type} {loser.want.value}: {why}")
