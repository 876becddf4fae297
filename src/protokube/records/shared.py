"""Plan a zone that others write to as well: publish the wanted values, and remove nothing that is not ours.

Ownership is per value. The hard part is what we must not touch: values without a mark, values and marks of other
clusters, and our own values that no listed object asks for at the moment. All of them stay, and the plan reports them.

`onename` decides for one name, `guard` what may be removed, `changes` makes the changes; this module plans the zone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from protokube.errors import Refused
from protokube.records import Key, Record
from protokube.records.batches import Unit
from protokube.records.changes import unit_of
from protokube.records.guard import Left, Removal, why_too_many
from protokube.records.marklines import can_be_written, marks_in
from protokube.records.names import LONGEST_NAME
from protokube.records.onename import ADOPTED, INHERITED, VALUE_TYPES, AtName, Outcome, decide, held
from protokube.records.owners import Mark, Owned, Want, mark_name, marked_name


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPlan:
    """What would change, by name, and what is left as it is."""

    units: tuple[Unit, ...]
    removals: tuple[Owned, ...]
    """Would be removed because no object asks for them: read their objects first, and plan again with what is kept."""
    replaced: tuple[Owned, ...]
    """Would be removed because their object has a new value at the name."""
    passed: tuple[Owned, ...]
    """Marks that would be removed while their values stay, for another object: read their objects too."""
    left: tuple[Left, ...]
    absent: Mapping[Owned, float]
    """For the next plan's `Removal.absent_since`."""
    look_again_at: float | None
    """When the first grace time ends."""
    owned: int
    """How many values we own before the change."""


def plan_shared(
    observed: Collection[Record],
    wants: Collection[Want],
    *,
    owner: str,
    ttl: int,
    removal: Removal,
    adopt: Collection[str] = frozenset(),
    inherit: Collection[str] = frozenset(),
    hands_off: Collection[str] = frozenset(),
) -> SharedPlan:
    """Make what we own in a zone equal to what objects ask for.

    `adopt` and `inherit`: names at which values without a mark become ours if an object asks for the name, because a
    user decided so or because the agents gave the name up. `hands_off`: names that the agents manage, at which we
    change nothing whatever the marks contain.
    """
    if not can_be_written(Mark(owner=owner, type="A", value="-", by="-")):
        raise Refused(f"{owner!r} cannot be written into a mark", want="an id of the cluster without blanks")
    refused: list[Left] = []
    taken = dict.fromkeys(inherit, INHERITED) | dict.fromkeys(adopt, ADOPTED)
    names = _gather(observed, wants, owner, taken, hands_off, refused)
    outcomes = [decide(names[name], removal) for name in sorted(names)]
    owned = sum(len(held(at.ours)) for at in names.values())
    if why := _why_none_goes(outcomes, removal, owned):
        outcomes = [decide(outcome.at, removal, why) if outcome.removals else outcome for outcome in outcomes]
    absent = {line: since for outcome in outcomes for line, since in sorted(outcome.absent.items())}
    return SharedPlan(
        units=tuple(unit for outcome in outcomes if (unit := unit_of(outcome, ttl)).changes),
        removals=tuple(Owned(o.at.name, mark) for o in outcomes for mark in sorted(o.removals)),
        replaced=tuple(Owned(o.at.name, mark) for o in outcomes for mark in sorted(o.replaced)),
        passed=tuple(Owned(o.at.name, mark) for o in outcomes for mark in sorted(o.passed)),
        left=tuple(sorted([*refused, *(left for outcome in outcomes for left in outcome.left)])),
        absent=absent,
        look_again_at=min((at for outcome in outcomes for at in outcome.grace_ends), default=None),
        owned=owned,
    )


def _gather(
    observed: Collection[Record],
    wants: Collection[Want],
    owner: str,
    taken: Mapping[str, str],
    hands_off: Collection[str],
    refused: list[Left],
) -> dict[str, AtName]:
    """Every name that an object asks for or that has a mark of ours."""
    seen: dict[Key, Record] = {record.key: record for record in observed}
    wanted: defaultdict[str, set[Mark]] = defaultdict(set)
    for want in wants:
        mark = Mark(owner=owner, type=want.type, value=want.value, by=want.by)
        if why := _why_not(want, mark, hands_off):
            refused.append(Left(name=want.name, kind="refused", why=why, by=(want.by,)))
        else:
            wanted[want.name].add(mark)
    marks: dict[str, list[Mark]] = {}
    for (place, kind), record in seen.items():
        if kind == "TXT" and (name := marked_name(place)) and name not in hands_off:
            marks[name] = [mark for text in record.values for mark in marks_in(text)]
    ours = {name for name, lines in marks.items() if any(line.owner == owner for line in lines)}
    return {
        name: AtName(
            name=name,
            records={kind: seen[name, kind] for kind in (*VALUE_TYPES, "TXT") if (name, kind) in seen},
            marks=seen.get((mark_name(name), "TXT")),
            ours={mark for mark in marks.get(name, ()) if mark.owner == owner},
            theirs={mark for mark in marks.get(name, ()) if mark.owner != owner},
            wanted=wanted.get(name, set()),
            adopt=taken.get(name, ""),
        )
        for name in wanted.keys() | ours
    }


def _why_not(want: Want, mark: Mark, hands_off: Collection[str]) -> str:
    if want.name in hands_off:
        return "somebody else manages this name"
    if marked_name(want.name):
        return "this name holds the ownership marks of another name"
    if len(mark_name(want.name)) > LONGEST_NAME:
        return "the name is too long to have a mark beside it"
    return "" if can_be_written(mark) else f"cannot be written into a mark: {str(mark)!r}"


def _why_none_goes(outcomes: Collection[Outcome], removal: Removal, owned: int) -> str:
    if removal.forced:
        return ""
    exempt = {(line.name, line.mark.type, line.mark.value) for line in removal.exempt}
    going = {(outcome.at.name, *value) for outcome in outcomes if outcome.removals for value in outcome.lost}
    return why_too_many(len(going - exempt), owned)
