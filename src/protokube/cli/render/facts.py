"""What there is to say about one thing: a few facts, what the agents said about it, and what happens next. Pure.

Nothing is asked here: all of it was in the view, in several places. Putting it together is the help.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from protokube.cli.render.table import lasting
from protokube.errors import InvalidRequest
from protokube.local.view.cluster import ClusterView
from protokube.local.view.seen import AgentNote
from protokube.local.view.values import MemberView
from protokube.spec.decode import near

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What there is to say about one thing."""

    kind: str
    name: str
    title: str
    facts: tuple[tuple[str, str], ...]
    said: tuple[str, ...]
    """What agents last reported about it."""
    next: str

    def lines(self) -> list[str]:
        width = max(len(name) for name, _ in self.facts)
        lines = [self.title, *(f"  {name.ljust(width)}  {text}" for name, text in self.facts)]
        if self.said:
            lines += ["said about it:", *(f"  {each}" for each in self.said)]
        return [*lines, f"next: {self.next}"]

    def tree(self) -> dict[str, Any]:
        facts = dict(self.facts)
        return {"kind": self.kind, "name": self.name, "title": self.title, "facts": facts, "said": list(self.said),
                "next": self.next}  # fmt: skip


def about(view: ClusterView, names: Iterable[str], etcd_cluster: str = "") -> list[tuple[str, AgentNote]]:
    """What agents said about any of these names, or of the whole etcd cluster, with how they said it."""
    known = {each for each in names if each}
    # as a whole word: etcd-c is not meant by etcd-client-ca
    mentioned = re.compile(r"(?<![\w./-])(" + "|".join(map(re.escape, sorted(known))) + r")(?![\w-])")

    def concerns(each: AgentNote) -> bool:
        return each.note.about in (known | {etcd_cluster} - {""}) or mentioned.search(each.note.text) is not None

    did = [AgentNote(host=agent.host, note=note) for agent in view.agents for note in agent.did]
    ways = (("did", did), ("waits", view.waits), ("person", view.person), ("broken", view.bugs))
    return [(how, each) for how, told in ways for each in told if concerns(each)]


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
    asked = [each.note.hint or each.note.text for how, each in notes if how == "person"]
    return f"a person acts: {asked[0]}" if asked else ""


def find(known: Iterable[T], name: str, names: Callable[[T], Iterable[str]], kind: str) -> T:
    things = list(known)
    for each in things:
        if name in names(each):
            return each
    all_names = [next(iter(names(each))) for each in things]
    hint = near(name, dict.fromkeys(told for each in things for told in names(each)))
    raise InvalidRequest(
        f"there is no {kind} {name!r}", saw=", ".join(all_names) or "none at all", hint=hint or "protokube status"
    )


def names_of(member: MemberView | None) -> tuple[str, ...]:
    return (member.name, member.dns_name) if member else ()
