"""The values at a name in one zone, who owns them, and what the controller would do next. Pure.

The controller removes nothing at once, so this plans twice: for now, and for the moment at which the grace time of all
unrequested values has passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from protokube.controllers.dns.tell.explain import Doubts, Everything
from protokube.controllers.dns.write.zonework import Policy
from protokube.records import Change, Record
from protokube.records.guard import Left, Removal
from protokube.records.marklines import marks_in
from protokube.records.owners import Mark, Owned, Want, mark_name, marked_name
from protokube.records.shared import SharedPlan, plan_shared
from protokube.records.zones import Zone


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One value, and who owns it."""

    type: str
    value: str
    ttl: int | None
    """None if only a mark is left of the value."""
    marks: tuple[Mark, ...]
    """Without any mark the value is unowned, so the controller never changes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """A value of ours that no object asks for."""

    line: Owned
    held_by: str
    """Why it stays; empty if it goes when its grace time ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtZone:
    """One zone that holds the name."""

    zone: Zone
    trouble: str = ""
    wanted: tuple[Want, ...] = ()
    standing: tuple[Standing, ...] = ()
    wildcard: str = ""
    """The wildcard record that answers if the name itself does not exist."""
    changes: tuple[Change, ...] = ()
    """What would be written now, without the marks."""
    leaving: tuple[Leaving, ...] = ()
    left: tuple[Left, ...] = ()
    """What is not as asked for, and why."""

    @property
    def in_order(self) -> bool:
        """Every requested value is there, and nothing is to be removed."""
        there = {(each.type, each.value) for each in self.standing if each.ttl is not None}
        asked = {(want.type, want.value) for want in self.wanted}
        return not self.trouble and not self.changes and not self.leaving and asked <= there


def at_zone(seen: Everything, zone: Zone, name: str, policy: Policy, doubt: Doubts) -> AtZone:
    if (trouble := seen.troubles.get(zone)) is not None:
        return AtZone(zone=zone, trouble=trouble)
    records, wants = seen.records[zone], seen.routed.wants[zone]

    def plan(removal: Removal) -> SharedPlan:
        return plan_shared(
            records, wants, owner=policy.owner, ttl=policy.ttl, removal=removal,
            inherit=seen.agents.left, hands_off=seen.agents.reserved,
        )  # fmt: skip

    first = plan(Removal(allowed=True, now=0.0, grace=policy.grace, forced=policy.forced))
    due = Removal(
        allowed=True, now=policy.grace, grace=policy.grace, absent_since=first.absent, forced=policy.forced
    )  # fmt: skip
    later = plan(due)
    askers = {want.by for want in wants if want.name == name}  # values within their grace time are shown as leaving
    return AtZone(
        zone=zone,
        wanted=tuple(want for want in wants if want.name == name),
        standing=tuple(_standing(records, name)),
        wildcard=_wildcard(records, name),
        changes=tuple(_changes(first, name)),
        leaving=tuple(_leaving(first, later, name, doubt)),
        left=tuple(left for left in first.left if left.name == name and (left.kind != "waits" or askers & {*left.by})),
    )


def _standing(records: Sequence[Record], name: str) -> Iterator[Standing]:
    lines = [text for each in records if each.key == (mark_name(name), "TXT") for text in each.values]
    marks = [mark for text in lines for mark in marks_in(text)]
    there = [each for each in sorted(records) if each.name == name]
    for record in there:
        for value in record.values:
            having = tuple(sorted(mark for mark in marks if (mark.type, mark.value) == (record.type, value)))
            yield Standing(type=record.type, value=value, ttl=record.ttl, marks=having)
    present = {(record.type, value) for record in there for value in record.values}
    for mark in sorted(marks):
        if (mark.type, mark.value) not in present:
            yield Standing(type=mark.type, value=mark.value, ttl=None, marks=(mark,))


def _wildcard(records: Sequence[Record], name: str) -> str:
    """RFC 4592: the wildcard directly below the closest encloser, which may exist only through names below it."""
    names = {record.name for record in records}
    there = {ending for each in names for ending in _endings(each)}
    for above in _endings(name):
        if above != name and f"*.{above}" in names:
            return f"*.{above}"
        if above in there:
            return ""
    return ""


def _endings(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.partition(".")[2]


def _changes(plan: SharedPlan, name: str) -> Iterator[Change]:
    for unit in plan.units:
        if unit.name == name:
            yield from (change for change in unit if not marked_name(change.key[0]))


def _leaving(first: SharedPlan, later: SharedPlan, name: str, doubt: Doubts) -> Iterator[Leaving]:
    going = {line for plan in (first, later) for line in plan.removals if line.name == name}
    for line in sorted({line for line in first.absent if line.name == name} | going):
        stays = f"{line.mark.type} {line.mark.value} stays: "
        held = next((left.why for left in later.left if left.name == name and left.why.startswith(stays)), "")
        yield Leaving(line=line, held_by=doubt(line) if line in going else held.removeprefix(stays))
