"""A zone in memory that several owners share, and short words for what they ask for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from protokube.providers.dns.memory import MemoryDns
from protokube.records import Change, Record
from protokube.records.batches import Unit, changes_of
from protokube.records.guard import Removal
from protokube.records.marklines import lines_of, marks_in
from protokube.records.owners import Mark, Owned, Want, mark_name
from protokube.records.shared import SharedPlan, plan_shared

TTL, GRACE = 60, 30.0
US, THEM = "cluster-a", "cluster-b"


def type_of(value: str) -> str:
    return "AAAA" if ":" in value else "A" if value[0].isdigit() else "CNAME"


def a_want(value: str = "10.0.0.1", by: str = "pod/default/web", name: str = "web.dev") -> Want:
    return Want(name=name, type=type_of(value), value=value, by=by)


def wants(count: int) -> list[Want]:
    return [a_want(by=f"pod/default/n{number:04}", name=f"n{number:04}.dev") for number in range(count)]


def a_record(*values: str, name: str = "web.dev", ttl: int = TTL) -> Record:
    return Record(name=name, type=type_of(values[0]), values=tuple(sorted(values)), ttl=ttl)


def a_mark(value: str = "10.0.0.1", by: str = "pod/default/web", owner: str = US) -> Mark:
    return Mark(owner=owner, type=type_of(value), value=value, by=by)


def the_marks(*marks: Mark | str, name: str = "web.dev", ttl: int = TTL) -> Record:
    """Marks as we write them, and any other text as it is."""
    lines = lines_of(mark for mark in marks if isinstance(mark, Mark)) | {
        text for text in marks if isinstance(text, str)
    }
    return Record(name=mark_name(name), type="TXT", values=tuple(sorted(lines)), ttl=ttl)


def owned(value: str = "10.0.0.1", by: str = "pod/default/web", name: str = "web.dev") -> Owned:
    return Owned(name, a_mark(value, by))


@dataclass
class Cluster:
    """One owner that plans and applies, and remembers between two plans only what a plan gave it."""

    dns: MemoryDns
    owner: str = US
    now: float = 0.0
    absent: dict[Owned, float] = field(default_factory=dict)

    def plan(
        self,
        asked: Iterable[Want] = (),
        *,
        allowed: bool = True,
        kept: Collection[Owned] = (),
        exempt: Collection[Owned] = (),
        forced: bool = False,
        adopt: Collection[str] = (),
        hands_off: Collection[str] = (),
    ) -> SharedPlan:
        removal = Removal(
            allowed=allowed,
            now=self.now,
            grace=GRACE,
            absent_since=self.absent,
            kept=dict.fromkeys(kept, "it is still asked for"),
            exempt=exempt,
            forced=forced,
        )
        plan = plan_shared(
            self.dns.list_records(),
            list(asked),
            owner=self.owner,
            ttl=TTL,
            removal=removal,
            adopt=adopt,
            hands_off=hands_off,
        )
        self.absent = dict(plan.absent)
        return plan

    def carry_out(self, plan: SharedPlan) -> None:
        self.dns.apply(changes_of(plan.units))

    def settle(self, asked: Iterable[Want] = (), *, forced: bool = False) -> None:
        """Plan and apply, over and over with time passing, until nothing is left to do."""
        asked = list(asked)
        for _ in range(6):
            self.carry_out(self.plan(asked, forced=forced))
            self.now += GRACE

    def marks(self) -> set[Owned]:
        return marks_of(self.dns.list_records(), self.owner)


def a_cluster(*records: Record, dns: MemoryDns | None = None, owner: str = US) -> Cluster:
    """A cluster over a zone that holds these records already."""
    dns = dns or MemoryDns("dev")
    dns.apply([Change(before=None, after=record, why="there already") for record in records])
    return Cluster(dns, owner)


def marks_of(records: Iterable[Record], owner: str) -> set[Owned]:
    found = set()
    for record in records:
        if record.type == "TXT" and record.name.startswith("_protokube"):
            star = "*." if record.name.startswith("_protokube-star.") else ""
            name = star + record.name.partition(".")[2]
            marks = {mark for text in record.values for mark in marks_in(text)}
            found |= {Owned(name, mark) for mark in marks if mark.owner == owner}
    return found


def afters(units: Iterable[Unit]) -> list[Record | None]:
    return [change.after for change in changes_of(units)]
