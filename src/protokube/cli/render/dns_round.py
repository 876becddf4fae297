"""Render one round of the dns-controller, as text and as data."""

from __future__ import annotations

from typing import Any

from protokube.controllers.dns.controller import Round
from protokube.controllers.dns.tell.journal import changes, sentences
from protokube.records import Change, Record


def lines(done: Round, *, dry_run: bool) -> list[str]:
    """The changes that were made, or would be made, and what could not be carried out."""
    applied: list[str] = []
    for outcome in done.zones:
        verb = "would change" if dry_run else "changed"
        applied += [
            f"{outcome.zone}: {len(outcome.applied)} name{'' if len(outcome.applied) == 1 else 's'} {verb}",
            *(f"  {each}" for each in changes(outcome.applied)),
        ]
    wrong = sorted(set(sentences(done)))
    problems = ["not as asked for:", *(f"  {each}" for each in wrong)] if wrong else []
    return [*applied, *problems] or ["no zone is managed"]


def tree(done: Round, *, dry_run: bool) -> dict[str, Any]:
    return {
        "waits": done.waits,
        "dryRun": dry_run,
        "zones": [
            {
                "zone": outcome.zone.name,
                "id": outcome.zone.id,
                "private": outcome.zone.private,
                "changes": [_change(change) for unit in outcome.applied for change in unit],
                "refused": [{"name": unit.name, "why": why} for unit, why in outcome.refused],
                "left": [{"name": left.name, "kind": left.kind, "why": left.why} for left in outcome.left],
                "kept": [
                    {"name": line.name, "value": line.mark.value, "by": line.mark.by, "why": doubt.why}
                    for line, doubt in sorted(outcome.doubts.items())
                ],
                "trouble": outcome.trouble,
            }
            for outcome in done.zones
        ],
        "problems": [{"source": each.source, "name": each.name, "why": each.why} for each in done.problems],
    }


def _change(change: Change) -> dict[str, Any]:
    name, kind = change.key
    return {"name": name, "type": kind, "before": _record(change.before), "after": _record(change.after)}


def _record(record: Record | None) -> dict[str, Any] | None:
    return None if record is None else {"values": list(record.values), "ttl": record.ttl}
