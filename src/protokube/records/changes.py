"""Turn the decision for a name into changes of records.

Every unit includes the record of the marks, even if only a value changes: any other writer of the name changes that
record too, and the provider's compare-and-swap then accepts only one of the two.
"""

from __future__ import annotations

from collections.abc import Collection

from protokube.records import Change, Record
from protokube.records.batches import Unit
from protokube.records.marklines import lines_of, marks_in
from protokube.records.onename import VALUE_TYPES, Outcome, held
from protokube.records.owners import mark_name


def unit_of(outcome: Outcome, ttl: int) -> Unit:
    """All changes at the name; none if the zone already matches the decision."""
    at, theirs = outcome.at, held(outcome.at.theirs)
    if outcome.settled and at.marks and at.marks.ttl == ttl and all(each.ttl == ttl for each in at.records.values()):
        return Unit(at.name, ())  # the usual case, so it is cheap
    ours = held(outcome.marks)
    gone = held(at.ours | at.adopted()) - ours - theirs
    stand = (at.present - gone) | held(outcome.come)
    changes: list[Change] = []
    for kind in VALUE_TYPES:
        values = {value for of, value in stand if of == kind}
        before = at.records.get(kind)
        shared = any((kind, value) in theirs or (kind, value) not in ours for value in values)
        after = _record(at.name, kind, values, ttl=before.ttl if before and shared else ttl)
        if before != after:
            changes.append(Change(before=before, after=after, why=_why(outcome, kind, before, after)))
    before = at.marks
    others = {text for text in (before.values if before else ()) if at.ours.isdisjoint(marks_in(text))}
    lines = others | lines_of(outcome.marks)
    after = _record(mark_name(at.name), "TXT", lines, ttl=before.ttl if before and others else ttl)
    if before != after or changes:
        why = "records who owns the values" if before != after else "guards the others"
        changes.append(Change(before=before, after=after, why=why))
    return Unit(at.name, tuple(sorted(changes, key=lambda change: change.key)))


def _record(name: str, kind: str, values: Collection[str], *, ttl: int) -> Record | None:
    return Record(name=name, type=kind, values=tuple(sorted(values)), ttl=ttl) if values else None


def _why(outcome: Outcome, kind: str, before: Record | None, after: Record | None) -> str:
    was, now = set(before.values if before else ()), set(after.values if after else ())
    by = {mark.value: mark.by for mark in sorted(outcome.marks | outcome.at.ours, reverse=True) if mark.type == kind}
    reasons = [f"{value} no longer for {by.get(value, 'anybody')}" for value in sorted(was - now)]
    reasons += [f"{value} for {by[value]}" for value in sorted(now - was)]
    return ", ".join(reasons) or f"TTL {after.ttl if after else 0}"
