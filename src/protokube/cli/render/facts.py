"""An explanation of one volume, member or record: facts, reports of the agents, and what happens next. Pure.

Everything comes from the view; this module only collects what concerns one object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from protokube.cli.render.table import lasting
from protokube.nearest import no_such
from protokube.view.cluster import ClusterView
from protokube.view.seen import AgentNote
from protokube.view.values import MemberView

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The explanation of one volume, member or record."""

    kind: str
    name: str
    title: str
    facts: tuple[tuple[str, str], ...]
    reports: tuple[str, ...]
    """What agents last reported about it; `said` in JSON."""
    next: str

    def lines(self) -> list[str]:
        width = max(len(name) for name, _ in self.facts)
        lines = [self.title, *(f"  {name.ljust(width)}  {text}" for name, text in self.facts)]
        if self.reports:
            lines += ["reported about it:", *(f"  {each}" for each in self.reports)]
        return [*lines, f"next: {self.next}"]

    def tree(self) -> dict[str, Any]:
        facts = dict(self.facts)
        return {"kind": self.kind, "name": self.name, "title": self.title, "facts": facts, "said": list(self.reports),
                "next": self.next}  # fmt: skip


def about(view: ClusterView, names: Iterable[str], etcd_cluster: str = "") -> list[tuple[str, AgentNote]]:
    """What agents reported about any of these names, or about the whole etcd cluster: (kind of report, report)."""
    known = {each for each in names if each}
    # whole words only: etcd-client-ca does not mention etcd-c
    mentioned = re.compile(r"(?<![\w./-])(" + "|".join(map(re.escape, sorted(known))) + r")(?![\w-])")

    def concerns(each: AgentNote) -> bool:
        return each.note.about in (known | {etcd_cluster} - {""}) or mentioned.search(each.note.text) is not None

    did = [AgentNote(host=agent.host, note=note) for agent in view.agents for note in agent.did]
    ways = (("did", did), ("waits", view.waits), ("person", view.person), ("broken", view.bugs))
    return [(how, each) for how, reports in ways for each in reports if concerns(each)]


def sentences(notes: Iterable[tuple[str, AgentNote]]) -> Iterator[str]:
    for how, each in notes:
        match how:
            case "did":
                yield f"{each.host}: {each.note.text}"
            case "waits":
                yield f"{_who(each)} waits, for {lasting(each.seconds)}: {each.note.text}"
            case "person":
                yield f"{_who(each)} needs a person: {each.note.text}" if each.host else each.note.text
            case _:
                yield f"{_who(each)} has a bug: {each.note.text}"


def _who(each: AgentNote) -> str:
    return f"{each.host} (last known)" if each.stale else each.host


def for_a_person(notes: Iterable[tuple[str, AgentNote]]) -> str:
    hints = [each.note.hint or each.note.text for how, each in notes if how == "person"]
    return f"a person acts: {hints[0]}" if hints else ""


def find(known: Iterable[T], name: str, names: Callable[[T], Iterable[str]], kind: str, cluster: str) -> T:
    things = list(known)
    for each in things:
        if name in names(each):
            return each
    also = [alias for each in things for alias in names(each)]
    shown = [next(iter(names(each))) for each in things]
    raise no_such(kind, name, shown, also=also, where=f"in {cluster}", hint="protokube status")


def names_of(member: MemberView | None) -> tuple[str, ...]:
    return (member.name, member.dns_name) if member else ()
