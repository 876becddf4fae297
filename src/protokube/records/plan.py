"""The plan between the records that are there and those that should be.

The hard part is not to delete: a source that could not be read looks just like one that is empty. So records go away
only when the caller says that its lists were complete, and never many at once: above the cap all of them stay, and a
person may force it. What replaces another value is a change and not bound by that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from protokube.errors import ProtokubeError
from protokube.records import Change, Key, Record

CAP_SHARE, CAP_VALUES = 0.2, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPlan:
    """What would change, sorted by name and type, and what is left as it is though it differs."""

    changes: tuple[Change, ...]
    left: tuple[str, ...] = ()


def plan_records(
    observed: Collection[Record],
    desired: Collection[Record],
    *,
    owned: Collection[Key],
    may_delete: bool,
    forced: bool = False,
) -> RecordPlan:
    """Make what we own equal to what is desired. A record that is not ours is never touched."""
    seen = {record.key: record for record in observed}
    wanted = {record.key: record for record in desired}
    ours = {key: record for key, record in seen.items() if key in owned}
    keep = "" if forced else _why_keep(ours, wanted, may_delete=may_delete)
    changes: list[Change] = []
    left: list[str] = []
    for key in sorted(seen.keys() | wanted.keys()):
        before, after = seen.get(key), wanted.get(key)
        if before is None or before == after:
            if before != after:
                changes.append(Change(before=None, after=after, why="not there yet"))
        elif key not in ours:
            if after is not None:
                left.append(f"{key[0]} {key[1]} is there and not ours")
        elif keep and _fewer(before, after):
            left.append(f"{key[0]} {key[1]} keeps all its values: {keep}")
            if after is not None and (kept := _with_values_of(after, before)) != before:
                changes.append(Change(before=before, after=kept, why="differs"))
        else:
            changes.append(Change(before=before, after=after, why="differs" if after else "no longer wanted"))
    return RecordPlan(changes=tuple(changes), left=tuple(left))


def _why_keep(ours: dict[Key, Record], wanted: dict[Key, Record], *, may_delete: bool) -> str:
    """Why no value may go away this time; nothing if they may."""
    if not may_delete:
        return "the sources were not read completely"
    going = sum(_fewer(record, wanted.get(key)) for key, record in ours.items())
    cap = max(CAP_VALUES, int(CAP_SHARE * sum(len(record.values) for record in ours.values())))
    return f"{going} values would go at once, more than {cap}" if going > cap else ""


def _fewer(before: Record, after: Record | None) -> int:
    """How many values go away without another one coming in their place."""
    return max(0, len(before.values) - (len(after.values) if after else 0))


def _with_values_of(after: Record, before: Record) -> Record:
    return replace(after, values=tuple(sorted({*after.values, *before.values})))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisected:
    """What became of a batch: what was carried out, and what was turned away, with the reason."""

    applied: tuple[Change, ...]
    quarantined: tuple[tuple[Change, str], ...]


def bisect(
    batch: Sequence[Change], apply: Callable[[Sequence[Change]], None], refusal: type[ProtokubeError]
) -> Bisected:
    """Apply a batch; if it is turned away, halve it until only what is bad stays outside.

    `refusal` is the error by which a provider turns a batch away for what is in it; every other error ends the work.
    Changes at one name are never torn apart: the TXT record beside an address says whose it is.
    """
    names = [tuple(changes) for _, changes in groupby(sorted(batch, key=lambda c: c.key), key=lambda c: c.key[0])]
    applied: list[Change] = []
    quarantined: list[tuple[Change, str]] = []

    def attempt(part: list[tuple[Change, ...]]) -> None:
        changes = [change for at_one_name in part for change in at_one_name]
        try:
            apply(changes)
        except refusal as why:
            if len(part) == 1:
                quarantined.extend((change, str(why)) for change in changes)
            else:
                attempt(part[: len(part) // 2])
                attempt(part[len(part) // 2 :])
        else:
            applied.extend(changes)

    if names:
        attempt(names)
    return Bisected(applied=tuple(applied), quarantined=tuple(quarantined))
