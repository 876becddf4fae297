"""One zone: plan, confirm, apply; and what each failure does to the state between rounds."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from builders.dns_objects import a_pod
from builders.owners import US, a_mark, a_record, the_marks
from clusters.dns_world import PUBLIC, Cluster, Leads, Wire
from protokube.controllers.dns.write.confirm import Look
from protokube.controllers.dns.write.zones import ZoneView
from protokube.controllers.dns.write.zonework import FIRST, MOST, TRIES, Outcome, Policy, Sight, ZoneWork
from protokube.errors import Refused
from protokube.providers.dns.memory import MemoryDns
from protokube.records import Change, Record
from protokube.records.owners import Want
from protokube.records.quarantine import FIRST as ASIDE

NAMES = ("a", "b", "c", "d")
GRACE = 30.0


class Bench:
    """A zone, the connection to it, and its ZoneWork."""

    def __init__(self, *, jitter: Callable[[], float] = lambda: 1.0, **policy: object) -> None:
        self.cluster, self.leads, self.now = Cluster(US), Leads(), 0.0
        self.dns = MemoryDns("example.com")
        self.wire = Wire(self.dns, PUBLIC, self.cluster, ())
        options = {"owner": US, "grace": GRACE} | policy
        self.work = ZoneWork(PUBLIC, ZoneView(self.wire), Policy(**options), self.leads.leading, jitter)  # type: ignore[arg-type]

    def asks(self, *names: str, address: str = "10.0.0.1") -> tuple[Want, ...]:
        """A pod for each name."""
        for name in names:
            self.cluster.put(a_pod(name, addresses=[address], internal_names=f"{name}.example.com"))
        return tuple(
            Want(name=f"{name}.example.com", type="A", value=address, by=f"pod/default/{name}") for name in names
        )

    def settle(self, wants: Collection[Want], *, whole: bool = True, **options: frozenset[str]) -> Outcome:
        seen = self.cluster.look()
        look = Look(self.cluster, seen.sources, seen.nodes)
        sight = Sight(look=look, whole=whole, trouble="" if whole else "nothing was heard", **options)
        return self.work.settle(tuple(wants), sight, self.now)

    def by_hand(self, *records: Record) -> None:
        seen = {record.key: record for record in self.dns.list_records()}
        self.dns.apply([Change(before=seen.get(each.key), after=each, why="by hand") for each in records])

    def addresses(self) -> dict[str, tuple[str, ...]]:
        found = [record for record in self.dns.list_records() if record.type == "A"]
        return {record.name.partition(".")[0]: record.values for record in found}


def test_what_is_asked_for_is_written_in_one_call_and_not_again() -> None:
    bench = Bench()
    wants = bench.asks(*NAMES)
    assert len(bench.settle(wants).applied) == 4
    assert bench.settle(wants).applied == []
    assert (bench.wire.writes, bench.dns.lists - 2) == (1, 1), "two lists are the judge's"


def test_a_record_that_changed_meanwhile_is_read_and_planned_anew_in_the_same_round() -> None:
    bench = Bench()
    bench.settle(bench.asks("a"))
    mark = a_mark(by="pod/default/else", owner="b", value="10.0.0.9")
    bench.by_hand(
        a_record("10.0.0.1", "10.0.0.9", name="a.example.com"),
        the_marks(a_mark(by="pod/default/a"), mark, name="a.example.com"),
    )
    outcome = bench.settle(bench.asks("a", address="10.0.0.2"))
    assert outcome.trouble == ""
    assert bench.addresses() == {"a": ("10.0.0.2", "10.0.0.9")}


def test_a_zone_that_others_write_to_all_the_time_is_tried_a_few_times_and_then_later() -> None:
    bench = Bench()
    bench.wire.mode = "stale"
    before = bench.dns.lists
    outcome = bench.settle(bench.asks("a"))
    assert "somebody else wrote there" in outcome.trouble
    assert bench.dns.lists - before == TRIES
    assert outcome.look_again_at == FIRST


def test_a_server_that_is_away_is_tried_more_and_more_seldom_and_nothing_is_forgotten() -> None:
    bench = Bench()
    wants = bench.asks("a")
    bench.wire.mode = "away"
    waits = []
    for _ in range(9):
        outcome = bench.settle(wants)
        assert outcome.look_again_at is not None
        waits.append(outcome.look_again_at - bench.now)
        bench.now = outcome.look_again_at
    assert waits == [1, 2, 4, 8, 16, 32, MOST, MOST, MOST]
    bench.wire.mode = ""
    assert bench.settle(wants).trouble == ""
    assert bench.addresses() == {"a": ("10.0.0.1",)}
    bench.wire.mode = "away"
    bench.work.forget()
    assert bench.settle(wants).look_again_at == bench.now + FIRST


def test_a_zone_that_waits_is_not_asked() -> None:
    bench = Bench()
    bench.wire.mode = "away"
    bench.settle(bench.asks("a"))
    bench.wire.mode, bench.now = "", FIRST / 2
    outcome = bench.settle(bench.asks("a"))
    assert outcome.trouble
    assert bench.dns.lists == 0


def test_those_that_fail_together_do_not_come_back_together() -> None:
    benches = [Bench(jitter=lambda at=at: at) for at in (0.0, 1.0)]  # type: ignore[misc]
    for bench in benches:
        bench.wire.mode = "away"
    assert [bench.settle(bench.asks("a")).look_again_at for bench in benches] == [FIRST / 2, FIRST]


def test_a_change_whose_answer_is_lost_is_seen_by_reading_and_not_made_twice() -> None:
    bench = Bench()
    bench.wire.mode = "lost"
    outcome = bench.settle(wants := bench.asks("a"))
    assert (outcome.applied, bench.wire.writes) == ([], 1)
    assert outcome.look_again_at is not None
    bench.wire.mode, bench.now = "", outcome.look_again_at
    assert bench.settle(wants).applied == []
    assert bench.wire.writes == 1


def test_a_record_that_is_turned_away_stops_no_other_and_is_tried_again_later() -> None:
    bench = Bench()
    bench.wire.bad = frozenset({"b.example.com"})
    outcome = bench.settle(wants := bench.asks(*NAMES))
    assert set(bench.addresses()) == {"a", "c", "d"}
    assert [unit.name for unit, _ in outcome.refused] == ["b.example.com"]
    bench.wire.bad, bench.now = frozenset(), ASIDE - 1
    assert [unit.name for unit, _ in bench.settle(wants).refused] == ["b.example.com"]
    bench.now = ASIDE
    assert bench.settle(wants).refused == []
    assert set(bench.addresses()) == set(NAMES)


def test_who_no_longer_leads_stops_before_the_call() -> None:
    bench = Bench()
    bench.leads.leader = False
    outcome = bench.settle(bench.asks("a"))
    assert "another replica leads" in outcome.trouble
    assert bench.wire.writes == 0


def test_who_loses_the_lead_between_two_calls_stops_there() -> None:
    bench = Bench()
    bench.wire.bad = frozenset({"b.example.com"})  # so that the batch is bisected
    bench.leads.questions = 2
    bench.settle(bench.asks(*NAMES))
    assert bench.wire.writes == 0
    assert bench.addresses() == {}


def test_a_dry_run_tells_what_it_would_write_and_writes_nothing() -> None:
    bench = Bench(dry_run=True)
    outcome = bench.settle(bench.asks(*NAMES))
    assert [unit.name for unit in outcome.applied] == [f"{name}.example.com" for name in NAMES]
    assert bench.wire.writes == 0


def test_a_value_goes_after_the_grace_time_and_a_question() -> None:
    bench = Bench()
    bench.settle(bench.asks("a"))
    bench.cluster.remove("pod/default/a")
    assert bench.settle(()).look_again_at == GRACE
    assert bench.cluster.asked_for == []
    bench.now = GRACE
    assert len(bench.settle(()).applied) == 1
    assert bench.cluster.asked_for == ["pod/default/a"]
    assert bench.addresses() == {}


@pytest.mark.parametrize("fault", ["the object is there", "the server does not answer", "lists are not whole"])
def test_a_value_stays_if(fault: str) -> None:
    bench = Bench()
    bench.settle(bench.asks("a"))
    if "there" in fault:
        bench.cluster.hide(["pod/default/a"])
    else:
        bench.cluster.remove("pod/default/a")
    bench.cluster.answers = "answer" not in fault
    for bench.now in (1.0, 40.0, 400.0):
        outcome = bench.settle((), whole="whole" not in fault)
    assert bench.addresses() == {"a": ("10.0.0.1",)}
    assert bool(outcome.doubts) == ("whole" not in fault)
    assert any(doubt.lists_stale for doubt in outcome.doubts.values()) == ("there" in fault)


def test_names_that_somebody_else_looks_after_are_not_touched() -> None:
    bench = Bench()
    wants = bench.asks("a")
    bench.settle(wants, hands_off=frozenset({"a.example.com"}))
    assert bench.addresses() == {}


def test_a_provider_that_turns_us_away_altogether_is_told_and_tried_again() -> None:
    class Closed(MemoryDns):
        def list_records(self) -> tuple[Record, ...]:
            raise Refused("the key is not known there")

    bench = Bench()
    bench.wire.inner = Closed("example.com")
    outcome = bench.settle(bench.asks("a"))
    assert outcome.trouble == "the key is not known there"
    assert outcome.look_again_at == FIRST
