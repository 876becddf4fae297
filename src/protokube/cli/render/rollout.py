"""Render the rollout record and the list of revisions. Pure."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from protokube.cli.render.table import lasting, table
from protokube.launch.revisions import Revision
from protokube.launch.rollout import Event, Rollout, State

Tree = dict[str, Any]


def event_line(event: Event) -> str:
    when = time.strftime("%H:%M:%S", time.localtime(event.at))
    return f"{when}  {f'{event.machine}: ' if event.machine else ''}{event.text}"


def render_rollout(cluster: str, record: Rollout, present: Mapping[str, int], now: float) -> list[str]:
    """`present`: by host, the revision that it runs."""
    lines = [f"{cluster}: revision {record.wanted}, {record.state.value}"]
    if record.turn:
        lines.append(f"{record.turn.name} restarts, for {lasting(max(now - record.turn.at, 0.0))}")
    if record.state is State.STOPPED and record.failure:
        lines += [f"stopped at {record.failure.name}: {record.failure.text}"]
    rows = [(host, str(number or "")) for host, number in sorted(present.items())]
    if rows:
        lines += ["", *table(("HOST", "REVISION"), rows)]
    return [*lines, "", *(event_line(each) for each in record.events)] if record.events else lines


def render_history(record: Rollout | None, found: Mapping[int, Revision], now: float) -> list[str]:
    rows = [
        (
            f"{number}{' *' if record and record.wanted == number else ''}",
            f"{lasting(max(now - each.at, 0.0))} ago",
            each.author,
            each.kubernetes or "none",
            each.etcd,
            each.note or each.source,
        )
        for number, each in sorted(found.items())
    ]
    return table(("REVISION", "WHEN", "BY", "KUBERNETES", "ETCD", "FROM"), rows)


def revision_tree(revision: Revision, *, wanted: bool) -> Tree:
    fields = ("number", "digest", "author", "at", "source", "kubernetes", "etcd", "note")
    data = {name: getattr(revision, name) for name in fields}
    return data | {"snapshots": dict(revision.snapshots), "inForce": wanted}
