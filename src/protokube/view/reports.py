"""Read the report of an agent, as its status has it: on its own disk, or in the state store. Pure.

Raises ValueError, KeyError, TypeError or AttributeError for a document that is no such report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from protokube.members.older_copy import Figures, Older
from protokube.notes import Note
from protokube.view.values import ROUNDS_EVERY, AgentView, MountedVolumeView

Row = Mapping[str, Any]


def read_agent(host: str, status: Row, *, age: float = 0.0) -> AgentView:
    report = status["report"]
    return AgentView(
        host=host,
        at=float(status["at"]),
        round=int(status["round"]),
        elected=bool(status["elected"]),
        revision=status.get("revision"),
        age=age,
        next_within=float(status.get("nextWithin", ROUNDS_EVERY)),
        took=float(status.get("took", 0.0)),
        serving=status.get("serving"),
        did=_notes(report["did"]),
        waits=_notes(report["waiting"]),
        person=_notes(report["needsAPerson"]),
        bugs=_notes(report["broken"]),
        warnings=_notes(report.get("warnings", ())),
        mounted=tuple(_mounted_volume(each) for each in status["members"]),
        phases={each["id"]: each["phase"] for each in status["volumes"] or ()},
    )


def _notes(rows: Sequence[Row]) -> tuple[Note, ...]:
    return tuple(
        Note(step=each["step"], about=each.get("about", ""), text=each["text"], hint=each.get("hint", ""),
             saw=each.get("saw", ""), since=each.get("since"))
        for each in rows
    )  # fmt: skip


def _mounted_volume(row: Row) -> MountedVolumeView:
    names = ("member", "volume", "epoch", "holder", "generation", "data", "doing", "why", "linked")
    return MountedVolumeView(**{name: row[name] for name in names}, older=_older(row.get("older")))


def _older(document: Row | None) -> Older | None:
    if document is None:
        return None
    return Older(disk=Figures(**document["disk"]), recorded=Figures(**document["recorded"]))
