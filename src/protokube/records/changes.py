"""What was decided for a name, as changes of records.

Every unit holds the record of the marks, also where only a value changes: whoever else writes at the name changes that
record too, and the compare-and-swap of the provider then lets only one of the two through.
"""

from __future__ import annotations

from collections.abc import Collection

from protokube.records import Change, Record
from protokube.records.batches import Unit
from protokube.records.marklines import lines_of, marks_in
from protokube.records.onename import VALUE_TYPES, Outcome, held
from protokube.records.owners import mark_name


def unit_of(outcome: Outcome, ttl: int) -> Unit:
    """All changes at the name; none if everything is as decided."""
    at, theirs = outcome.at, held(outcome.at.theirs)
    if outcome.settled and at.marks and at.marks.ttl == ttl and all(each.ttl == ttl for each in at.records.values()):
        return Unit(at.name, ())  # nearly always, so it is cheap
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
        told = "says whose the values are" if before != after else "guards the others"
        changes.append(Change(before=before, after=after, why=told))
    return Unit(at.name, tuple(sorted(changes, key=lambda change: change.key)))


def _record(name: str, kind: str, values: Collection[str], *, ttl: int) -> Record | None:
    return Record(name=name, type=kind, values=tuple(sorted(values)), ttl=ttl) if values else None


def _why(outcome: Outcome, kind: str, before: Record | None, after: Record | None) -> str:
    was, now = set(before.values if before else ()), set(after.values if after else ())
    by = {mark.value: mark.by for mark in sorted(outcome.marks | outcome.at.ours, reverse=True) if mark.type == kind}
    told = [f"{value} no longer for {by.get(value, 'anybody')}" for value in sorted(was - now)]
    told += [f"{value} for {by[value]}" for value in sorted(now - was)]
    return ", ".join(told) or f"TTL {after.ttl if after else 0}"
