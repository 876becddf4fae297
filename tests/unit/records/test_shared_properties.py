"""Properties of any zone, wants and other writers: foreign values stay, and wanted values are added."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from builders.owners import (
    GRACE,
    THEM,
    TTL,
    US,
    Cluster,
    a_cluster,
    a_mark,
    a_record,
    marks_of,
    the_marks,
    type_of,
    wants,
)
from protokube.providers.dns import BadRecord, Stale
from protokube.providers.dns.memory import MemoryDns
from protokube.records import Change, Record
from protokube.records.batches import Unit, changes_of
from protokube.records.guard import CAP_SHARE, CAP_VALUES, Removal
from protokube.records.marklines import lines_of, marks_in
from protokube.records.onename import ADOPTED, held
from protokube.records.owners import Mark, Owned, Want, mark_name
from protokube.records.shared import SharedPlan, plan_shared

NAMES = ("a.dev", "*.dev")
ADDRESSES, ALIASES = ("10.0.0.1", "10.0.0.2", "2001:db8::1"), ("x.example.com", "y.example.com")
VALUES = (*ADDRESSES, *ALIASES)
OBJECTS = ("pod/d/a", "pod/d/b>node/1", "pod/d/b>node/2", "service/d/s>node/1")

WANT = st.builds(
    lambda name, value, by: Want(name=name, type=type_of(value), value=value, by=by),
    st.sampled_from(NAMES),
    st.sampled_from(VALUES),
    st.sampled_from(OBJECTS),
)
OWNERS: st.SearchStrategy[tuple[str, ...]] = st.sampled_from([(), (), (US,), (THEM,), (US, THEM)])
STRAY = ["", "heritage=other", "protokube/9 x", str(a_mark()), str(a_mark("x.example.com", owner=THEM))]
STANDING: st.SearchStrategy[set[str]] = st.one_of(
    st.sets(st.sampled_from(ADDRESSES)), st.sampled_from(ALIASES).map(lambda alias: {alias}), st.just(set())
)


def by_type(name: str, values: Iterable[str], ttl: int) -> list[Record]:
    values = set(values)
    return [
        a_record(*(value for value in values if type_of(value) == kind), name=name, ttl=ttl)
        for kind in sorted({type_of(value) for value in values})
    ]


@st.composite
def zones(draw: st.DrawFn) -> list[Record]:
    """Any zone that DNS allows, with marks that may be right or wrong."""
    records: list[Record] = []
    for name in NAMES:
        values = draw(STANDING)
        records += by_type(name, values, draw(st.sampled_from([5, TTL])))
        lines = draw(st.sets(st.sampled_from(STRAY), max_size=1))
        marks = {
            a_mark(value, draw(st.sampled_from(OBJECTS)), owner) for value in sorted(values) for owner in draw(OWNERS)
        }
        lines |= lines_of(marks) if draw(st.booleans()) else set(map(str, marks))
        if lines:
            records.append(the_marks(*lines, name=name, ttl=draw(st.sampled_from([5, TTL]))))
        if not values & set(ALIASES) and draw(st.integers(0, 4)) == 0:
            records.append(Record(name=name, type="TXT", values=("mine",), ttl=5))
    return records


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Record], Removal]:
    """A zone, and what may be known about each value of ours in it."""
    zone = draw(zones())
    absent_since: dict[Owned, float] = {}
    kept: dict[Owned, str] = {}
    exempt: set[Owned] = set()
    for line in sorted(marks_of(zone, US)):
        match draw(st.integers(0, 6)):
            case 0:
                absent_since[line], kept[line] = 0.0, "asked for"
            case 1:
                exempt.add(line)
            case 2 | 3 as late:
                absent_since[line] = 68.0 + late  # the grace time of one of them has ended
            case 4:
                absent_since[line] = 0.0
    removal = Removal(
        allowed=draw(st.integers(0, 3)) > 0,
        now=100.5,
        grace=GRACE,
        absent_since=absent_since,
        kept=kept,
        exempt=exempt,
        forced=draw(st.booleans()),
    )
    return zone, removal


def the_plan(zone: list[Record], asked: list[Want], removal: Removal, adopt: Iterable[str] = ()) -> SharedPlan:
    return plan_shared(zone, asked, owner=US, ttl=TTL, removal=removal, adopt=set(adopt))


def lines_at(zone: list[Record], name: str) -> set[str]:
    return {text for record in zone if record.key == (mark_name(name), "TXT") for text in record.values}


def lost_and_new(change: Change) -> tuple[set[str], set[str]]:
    was, now = (set(record.values if record else ()) for record in (change.before, change.after))
    return was - now, now - was


@examples(200)
@given(situations(), st.lists(WANT, max_size=6), st.sets(st.sampled_from(NAMES), max_size=1))
def test_every_plan_keeps_its_promises(
    situation: tuple[list[Record], Removal], asked: list[Want], adopt: set[str]
) -> None:
    zone, removal = situation
    plan = the_plan(zone, asked, removal, adopt)

    there = {record.key: record for record in zone}
    assert [unit.name for unit in plan.units] == sorted({unit.name for unit in plan.units})
    for unit in plan.units:
        assert any(change.before != change.after for change in unit)
        assert {change.key for change in unit} <= {(unit.name, kind) for kind in ("A", "AAAA", "CNAME")} | {
            (mark_name(unit.name), "TXT")
        }
        assert all(change.before == there.get(change.key) for change in unit)
        nothing_of_others_is_touched(unit, lines_at(zone, unit.name), removal, adopted=unit.name in adopt)
        only_what_is_asked_for_comes(unit, asked, adopt)
    for name in NAMES:
        values = [record for record in zone if record.name == name and record.type != "TXT"]
        if values and name not in adopt and not any(map(marks_in, lines_at(zone, name))):
            assert name not in {unit.name for unit in plan.units}, "what others made alone is left alone"
    early = {line for line, since in removal.absent_since.items() if since + GRACE > removal.now}
    known = (removal.absent_since.keys() - early - removal.kept.keys()) | set(removal.exempt)
    assert set(plan.removals) <= known, "what nobody missed long enough does not go"
    assert plan == the_plan(zone[::-1], asked[::-1], removal, adopt)
    dns = a_cluster(*zone).dns
    dns.apply(changes_of(plan.units))
    for line in plan.replaced:
        assert was_followed(line, standing(dns, asked) - marks_of(zone, US), set()), "nothing goes for what cannot come"
    again = the_plan(list(dns.list_records()), asked, replace(removal, absent_since=plan.absent), adopt)
    assert again.units == (), "carrying it out leaves nothing to plan"


def standing(dns: MemoryDns, asked: list[Want]) -> set[Owned]:
    """Requested values that are there."""
    there = {(record.name, record.type, value) for record in dns.list_records() for value in record.values}
    return {
        Owned(want.name, a_mark(want.value, want.by)) for want in asked if (want.name, want.type, want.value) in there
    }


def nothing_of_others_is_touched(unit: Unit, lines: set[str], removal: Removal, *, adopted: bool) -> None:
    marks = {mark for text in lines for mark in marks_in(text)}
    ours = {(mark.type, mark.value) for mark in marks if mark.owner == US}
    theirs = {(mark.type, mark.value) for mark in marks if mark.owner != US}
    kept = {line.mark for line in removal.kept if line.name == unit.name and line.mark in marks}
    assert any(change.key == (mark_name(unit.name), "TXT") for change in unit), "value and marks belong together"
    for change in unit:
        lost, new = lost_and_new(change)
        if change.key[1] == "TXT":
            gone = {mark for text in lost for mark in marks_in(text)} - {
                mark for text in new for mark in marks_in(text)
            }
            assert all(mark.owner == US for text in (*lost, *new) for mark in marks_in(text)), "others' lines stay"
            assert all(map(marks_in, lost)), "so does what is no mark"
            assert removal.allowed or not gone
            assert not gone & kept
        else:
            assert removal.allowed or not lost
            assert {(change.key[1], value) for value in lost} <= ours - theirs - held(kept)
            if change.before and change.after and change.before.ttl != change.after.ttl:
                whose = {(change.key[1], value) for value in change.before.values}
                assert whose <= ours - theirs or (adopted and not whose & theirs)


def only_what_is_asked_for_comes(unit: Unit, asked: list[Want], adopt: set[str]) -> None:
    marks = {a_mark(want.value, want.by) for want in asked if want.name == unit.name}
    for change in unit:
        _, new = lost_and_new(change)
        if change.key[1] == "TXT":
            was = {mark for text in change.before.values for mark in marks_in(text)} if change.before else set()
            strange = {mark for text in new for mark in marks_in(text)} - marks - was
            assert all(mark.by == ADOPTED and unit.name in adopt for mark in strange)
        else:
            assert new <= {mark.value for mark in marks if mark.type == change.key[1]}
            txt = next(each.after for each in unit if each.key[1] == "TXT")
            marked = held(mark for text in (txt.values if txt else ()) for mark in marks_in(text) if mark.owner == US)
            assert {(change.key[1], value) for value in new} <= marked, "no value comes without its mark"


@dataclass(frozen=True)
class Ask:
    owner: str
    wants: tuple[Want, ...]


@dataclass(frozen=True)
class Look:
    owner: str


@dataclass(frozen=True)
class Write:
    owner: str


@dataclass(frozen=True)
class Hand:
    """Somebody adds a value by hand."""

    name: str
    value: str


Step = Ask | Look | Write | Hand
OWNER = st.sampled_from([US, THEM])
STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.builds(Ask, OWNER, st.lists(WANT, max_size=4).map(tuple)),
        st.builds(Look, OWNER),
        st.builds(Write, OWNER),
        st.builds(Hand, st.sampled_from(NAMES), st.sampled_from(ADDRESSES)),
    ),
    max_size=25,
)


class Shared:
    """Two clusters and a person over one zone."""

    def __init__(self) -> None:
        self.dns = MemoryDns("dev")
        self.clusters = {owner: Cluster(self.dns, owner) for owner in (US, THEM)}
        self.asked: dict[str, tuple[Want, ...]] = {US: (), THEM: ()}
        self.plans: dict[str, SharedPlan] = {}
        self.by_hand: set[tuple[str, str]] = set()

    def step(self, step: Step) -> None:
        match step:
            case Ask(owner, asked):
                self.asked[owner] = asked
            case Look(owner):
                self.clusters[owner].now += GRACE / 2
                self.plans[owner] = self.clusters[owner].plan(self.asked[owner])
            case Write(owner) if plan := self.plans.pop(owner, None):
                self.write(self.clusters[owner], plan)
            case Hand(name, value):
                self.add_by_hand(name, value)

    def write(self, cluster: Cluster, plan: SharedPlan) -> None:
        try:
            cluster.carry_out(plan)
        except (Stale, BadRecord):  # another writer was faster; a new address excludes a CNAME
            return

    def add_by_hand(self, name: str, value: str) -> None:
        there = {record.type: record for record in self.dns.read([name])}
        before = there.get(type_of(value))
        if "CNAME" in there or (before and value in before.values):
            return
        after = a_record(value, *(before.values if before else ()), name=name)
        self.dns.apply([Change(before=before, after=after, why="by hand")])
        self.by_hand.add((name, value))

    def quiet(self) -> None:
        for _ in range(2):
            for owner, cluster in self.clusters.items():
                cluster.settle(self.asked[owner])

    def values(self) -> set[tuple[str, str]]:
        return {
            (record.name, value)
            for record in self.dns.list_records()
            if record.type != "TXT"
            for value in record.values
        }


@examples(60)
@given(STEPS)
def test_two_clusters_and_a_person_in_any_order_lose_nothing_settle_and_can_leave(steps: list[Step]) -> None:
    shared = Shared()
    for step in steps:
        shared.step(step)
        assert shared.by_hand <= shared.values()

    shared.quiet()

    marked = set()
    for owner, cluster in shared.clusters.items():
        plan = cluster.plan(shared.asked[owner])
        explained = {(left.name, by) for left in plan.left if left.kind in ("right", "refused") for by in left.by}
        asked = {Owned(want.name, a_mark(want.value, want.by, owner)) for want in shared.asked[owner]}
        assert plan.units == ()
        assert cluster.marks() <= asked, "what nobody asks for has gone"
        assert all((line.name, line.mark.by) in explained for line in asked - cluster.marks()), (
            "what did not come is told"
        )
        marked |= {(line.name, line.mark.value) for line in cluster.marks()}
    assert shared.values() == shared.by_hand | marked

    shared.asked = {US: (), THEM: ()}
    shared.quiet()
    assert shared.values() == shared.by_hand
    assert marks_of(shared.dns.list_records(), US) | marks_of(shared.dns.list_records(), THEM) == set()


@st.composite
def possible(draw: st.DrawFn) -> tuple[Want, ...]:
    """Wants that can all stand at once: at each name addresses, or one alias."""
    asked: list[Want] = []
    for name in NAMES:
        lines = draw(
            st.one_of(
                st.lists(st.tuples(st.sampled_from(ADDRESSES), st.sampled_from(OBJECTS)), max_size=4, unique=True),
                st.tuples(st.sampled_from(ALIASES), st.sampled_from(OBJECTS)).map(lambda line: [line]),
            )
        )
        asked += [Want(name=name, type=type_of(value), value=value, by=by) for value, by in lines]
    return tuple(asked)


ROUNDS = st.lists(
    st.tuples(possible(), st.sampled_from([0.0, 10.0, GRACE]), st.booleans(), st.integers(0, 5)), max_size=12
)


@examples(60)
@given(ROUNDS)
def test_a_value_goes_only_a_grace_time_after_it_was_last_asked_for_and_in_the_end_all_is_as_asked(
    rounds: list[tuple[tuple[Want, ...], float, bool, int]],
) -> None:
    cluster = a_cluster()
    last_asked: dict[Owned, float] = {}
    asked: tuple[Want, ...] = ()
    for asked, passed, allowed, restart in rounds:
        cluster.now += passed
        if restart == 0:
            cluster.absent = {}
        before = cluster.marks()
        plan = cluster.plan(asked, allowed=allowed)
        cluster.carry_out(plan)
        wanted = {Owned(want.name, a_mark(want.value, want.by)) for want in asked}
        last_asked |= dict.fromkeys(wanted, cluster.now)
        for line in before - cluster.marks():
            assert allowed
            assert line not in wanted
            if line in plan.removals:
                assert cluster.now - last_asked[line] >= GRACE
            else:
                assert was_followed(line, wanted - before, wanted)

    cluster.settle(asked)

    assert cluster.marks() == {Owned(want.name, a_mark(want.value, want.by)) for want in asked}
    values = {
        (record.name, record.type, value)
        for record in cluster.dns.list_records()
        if record.type != "TXT"
        for value in record.values
    }
    assert values == {(want.name, want.type, want.value) for want in asked}


def was_followed(line: Owned, new: set[Owned], wanted: set[Owned]) -> bool:
    """Its object has a new value at the name, or another object asks for the same value."""

    def pod(mark: Mark) -> str:
        return mark.by.partition(">")[0] if mark.by.startswith("pod/") else mark.by

    return any(
        each.name == line.name
        and pod(each.mark) == pod(line.mark)
        and (each.mark.type == line.mark.type or "CNAME" in (each.mark.type, line.mark.type))
        for each in new
    ) or any(
        (each.name, each.mark.type, each.mark.value) == (line.name, line.mark.type, line.mark.value) for each in wanted
    )


@examples(25)
@given(st.sampled_from([30, 50, 70]), st.lists(st.tuples(st.integers(9, 16), st.integers(0, 9)), max_size=5))
def test_never_more_values_go_at_once_than_the_cap(count: int, rounds: list[tuple[int, int]]) -> None:
    every = wants(count)
    cluster = a_cluster()
    cluster.settle(every)
    for missing, force in rounds:
        asked, forced = every[missing:], force == 0
        before = cluster.marks()
        plan = cluster.plan(asked, forced=forced)
        cluster.carry_out(plan)
        gone = before - cluster.marks()
        assert len(gone) == len(plan.removals)
        assert forced or len(gone) <= max(CAP_VALUES, int(CAP_SHARE * len(before)))
        cluster.now += GRACE
