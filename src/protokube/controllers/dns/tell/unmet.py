"""The requests that a round did not meet: one definition for Events and conditions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from protokube.controllers.dns.controller import Round
from protokube.controllers.dns.decide.desired import source_of
from protokube.records import Record
from protokube.records.batches import Unit
from protokube.records.marklines import marks_in
from protokube.records.owners import Mark, marked_name


@dataclass(frozen=True, slots=True)
class Unmet:
    source: str
    """The key of the object."""
    name: str
    """The DNS name; empty if the problem is about the object itself."""
    why: str
    turned_away_by: str = ""
    """The zone whose provider rejected it, if one did."""


def unmet(done: Round) -> Iterator[Unmet]:
    for problem in done.problems:
        yield Unmet(problem.source, problem.name, problem.why)
    for outcome in done.zones:
        for left in outcome.left:
            if left.kind == "refused":
                yield from (Unmet(source_of(by), left.name, left.why) for by in left.by)
        for unit, why in outcome.refused:
            new, _ = marks_changed(unit)
            for source in sorted({source_of(mark.by) for mark in new}):
                yield Unmet(source, unit.name, why, outcome.zone.name)


def marks_changed(unit: Unit) -> tuple[set[Mark], set[Mark]]:
    """The marks that a unit adds and those that it removes: it changes only our own."""
    for change in unit:
        if change.key[1] == "TXT" and marked_name(change.key[0]):
            after, before = _marks(change.after), _marks(change.before)
            return after - before, before - after
    return set(), set()


def _marks(record: Record | None) -> set[Mark]:
    return {mark for text in (record.values if record else ()) for mark in marks_in(text)}
