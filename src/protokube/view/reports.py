"""Read the report of an agent, as its status has it: on its own disk, or in the state store. Pure.

Raises ValueError, KeyError, TypeError or AttributeError for a document that is no such report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from protokube.members.older_copy import Figures, Older
from protokube.notes import Note
from protokube.view import leaves
from protokube.view.values import ROUNDS_EVERY, AgentView, MountedVolumeView

Row = Mapping[str, Any]


def read_agent(host: str, status: Row, *, age: float = 0.0) -> AgentView:
    report = leaves.fields(status["report"])
    volumes = [leaves.fields(each) for each in leaves.each_of(status["volumes"] or ())]
    return AgentView(
        host=host,
        at=leaves.number(status["at"]),
        round=leaves.whole(status["round"]),
        elected=leaves.flag(status["elected"]),
        revision=leaves.optional_whole(status.get("revision")),
        age=age,
        next_within=leaves.number(status.get("nextWithin", ROUNDS_EVERY)),
        took=leaves.number(status.get("took", 0.0)),
        serving=leaves.optional_flag(status.get("serving")),
        did=_notes(report["did"]),
        waits=_notes(report["waiting"]),
        person=_notes(report["needsAPerson"]),
        bugs=_notes(report["broken"]),
        warnings=_notes(report.get("warnings", ())),
        mounted=tuple(_mounted_volume(leaves.fields(each)) for each in leaves.each_of(status["members"])),
        phases={leaves.given(each["id"]): leaves.name(each["phase"]) for each in volumes},
    )


def _notes(rows: Any) -> tuple[Note, ...]:
    return tuple(_note(leaves.fields(each)) for each in leaves.each_of(rows))


def _note(row: Row) -> Note:
    return Note(
        step=leaves.name(row["step"]), about=leaves.sentence(row.get("about", "")), text=leaves.sentence(row["text"]),
        hint=leaves.sentence(row.get("hint", "")), saw=leaves.sentence(row.get("saw", "")),
        since=leaves.optional_number(row.get("since")),
    )  # fmt: skip


def _mounted_volume(row: Row) -> MountedVolumeView:
    return MountedVolumeView(
        member=leaves.member(row["member"]), volume=leaves.given(row["volume"]),
        epoch=leaves.optional_whole(row["epoch"]), holder=leaves.optional_name(row["holder"]),
        generation=leaves.optional_name(row["generation"]), data=leaves.name(row["data"]),
        doing=leaves.name(row["doing"]), why=leaves.sentence(row["why"]), linked=leaves.flag(row["linked"]),
        older=_older(row.get("older")),
    )  # fmt: skip


def _older(document: Any) -> Older | None:
    if document is None:
        return None
    found = leaves.fields(document)
    return Older(disk=_figures(found["disk"]), recorded=_figures(found["recorded"]))


def _figures(document: Any) -> Figures:
    return Figures(**{name: leaves.whole(value) for name, value in leaves.fields(document).items()})
