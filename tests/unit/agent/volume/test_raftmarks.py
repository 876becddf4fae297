"""The mark of a log: written once a minute at most, never lowered, and only after the log was flushed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest

from builders.agent import a_mounted_volume, a_round, a_store
from clusters.scenario.edges import FakeClock, HostClock, Inline, ShakyStore
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.agent.volume import raftmarks
from protokube.etcd.wal import UnreadableLog
from protokube.members.raftmark import LogPosition, RaftMark, decode
from protokube.members.start_values import Data, Decision, Refuse, Start, Wait
from protokube.store import layout

T = TypeVar("T")
STORES = count(1)
POSITION = LogPosition(cluster_id=0xC, member_id=0xA, term=2, commit=100, last_index=104)
GOES_ON = Start(fresh=False)


class Logs:
    """A log that ends where the test says, or cannot be flushed."""

    def __init__(self) -> None:
        self.end: LogPosition | OSError | UnreadableLog = POSITION
        self.flushes = 0

    def position(self, _folder: Path) -> LogPosition:
        raise AssertionError("the mark is written from what was flushed")

    def flushed(self, _folder: Path) -> LogPosition:
        self.flushes += 1
        if not isinstance(self.end, LogPosition):
            raise self.end
        return self.end


class Slow:
    """Implements Background: what was started is collected when it is asked for again."""

    def __init__(self) -> None:
        self.started: set[str] = set()

    def run(self, name: str, work: Callable[[], T]) -> T | None:
        if name in self.started:
            self.started.remove(name)
            return work()
        self.started.add(name)
        return None


class Bench:
    """One served member, round after round."""

    def __init__(self, root: Path) -> None:
        self.clock, self.logs = FakeClock(), Logs()
        self.store = ShakyStore(a_store(f"raftmarks-{next(STORES)}"))
        self.round_ = a_round(root, clock=HostClock(self.clock), store=self.store, logs=self.logs, background=Inline())
        self.home = a_mounted_volume(self.round_)

    def round(self, decision: Decision | None = GOES_ON, *, settled: bool = True) -> Round:
        round_ = self.round_
        round_.report, round_.mounted = Report(), [self.home]
        round_.decisions = {self.home.volume: decision} if decision else {}
        round_.settled = {self.home.volume} if settled else set()
        raftmarks.sync(round_)
        return round_

    def mark(self, position: LogPosition = POSITION) -> RaftMark | None:
        return raftmarks.read(self.round_, "main", "g1", position)

    @property
    def recorded(self) -> tuple[int, int] | None:
        mark = self.mark()
        return (mark.term, mark.commit) if mark else None


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_the_first_round_records_where_the_flushed_log_ends(bench: Bench) -> None:
    assert bench.mark() is None
    bench.round()
    assert bench.mark() == RaftMark(generation="g1", cluster_id=0xC, member_id=0xA, term=2, commit=100)


def test_a_mark_lies_under_its_whole_key(bench: Bench) -> None:
    bench.round()

    assert list(bench.store.list_paths("laptop/etcd/main/raft")) == [
        layout.etcd_raft_mark("laptop", "main", "g1", 0xC, 0xA)
    ]
    for other in (replace(POSITION, member_id=0xB), replace(POSITION, cluster_id=0xD)):
        assert bench.mark(other) is None
    assert raftmarks.read(bench.round_, "main", "g2", POSITION) is None


def test_at_most_one_write_and_one_flush_a_minute(bench: Bench) -> None:
    for second in range(600):
        bench.logs.end = replace(POSITION, commit=100 + second)
        bench.round()
        bench.clock.advance(1.0)

    assert bench.store.writes == 10
    assert bench.logs.flushes == 10


def test_a_log_that_does_not_move_is_not_written_again(bench: Bench) -> None:
    for _ in range(10):
        bench.round()
        bench.clock.advance(61)
    assert bench.store.writes == 1


@pytest.mark.parametrize("changes", [{"term": 1}, {"commit": 99}, {"term": 1, "commit": 0}])
def test_a_mark_is_never_lowered(bench: Bench, changes: dict[str, int]) -> None:
    bench.round()
    bench.logs.end = replace(POSITION, **changes)
    bench.clock.advance(61)
    bench.round()
    assert bench.recorded == (2, 100)


def test_each_figure_rises_by_itself(bench: Bench) -> None:
    bench.round()
    bench.logs.end = replace(POSITION, term=1, commit=200)
    bench.clock.advance(61)
    bench.round()
    assert bench.recorded == (2, 200)


@pytest.mark.parametrize("error", [OSError(5, "input/output error"), UnreadableLog("no segment begins")])
def test_nothing_is_recorded_unless_the_flush_succeeded(bench: Bench, error: OSError | UnreadableLog) -> None:
    bench.logs.end = error

    round_ = bench.round()

    assert bench.mark() is None
    assert bench.store.writes == 0
    assert ["its log position is not recorded" in each.text for each in round_.report.warnings] == [True]
    assert round_.report.waits == []


def test_after_a_failed_flush_the_next_round_tries_again(bench: Bench) -> None:
    bench.logs.end = OSError(5, "input/output error")
    bench.round()
    bench.logs.end = POSITION
    bench.round()
    assert bench.recorded == (2, 100)


@pytest.mark.parametrize("fault", ["down", "read_only"])
def test_a_store_that_is_away_is_a_warning_and_nothing_waits_for_it(bench: Bench, fault: str) -> None:
    setattr(bench.store, fault, True)
    round_ = bench.round()
    assert len(round_.report.warnings) == 1
    assert round_.report.waits == []
    assert round_.report.person == []

    setattr(bench.store, fault, False)
    assert bench.round().report.warnings == []
    assert bench.recorded == (2, 100)


def test_a_flush_that_takes_long_is_collected_by_a_later_round(bench: Bench) -> None:
    bench.round_.edges.background = Slow()
    bench.round()
    assert bench.mark() is None
    bench.round()
    assert bench.recorded == (2, 100)


@pytest.mark.parametrize(
    "decision", [None, Start(fresh=True), Wait("later"), Refuse("no")], ids=["none", "fresh", "wait", "refuse"]
)
def test_what_is_not_served_is_not_recorded(bench: Bench, decision: Decision | None) -> None:
    bench.round(decision)
    assert bench.logs.flushes == 0


def test_what_is_not_settled_or_has_no_data_is_not_recorded(bench: Bench) -> None:
    bench.round(settled=False)
    bench.home = replace(bench.home, data=Data.MISSING)
    bench.round()
    assert bench.logs.flushes == 0


def test_a_person_can_lower_it_and_nobody_else(bench: Bench) -> None:
    bench.round()
    raftmarks.reset(bench.round_, "main", "g1", replace(POSITION, term=1, commit=7))
    assert bench.recorded == (1, 7)


def test_a_mark_that_cannot_be_read_is_none_and_is_written_again(bench: Bench) -> None:
    path = layout.etcd_raft_mark("laptop", "main", "g1", 0xC, 0xA)
    bench.store.create(path, b"\xff torn")
    assert bench.mark() is None

    bench.round()

    assert decode(bench.store.read(path).data.decode().strip()) == bench.mark()
    assert bench.recorded == (2, 100)
