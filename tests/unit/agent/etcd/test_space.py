"""The step that heals a full etcd, and the watch beside it: what becomes of jobs that fail, race or die."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from builders.agent import a_mounted_volume, a_round, a_store
from clusters.etcd import eventually
from clusters.scenario.edges import FakeClock, HostClock, ShakyStore
from clusters.scenario.host import wanted_of
from protokube.agent import threads
from protokube.agent.etcd import space
from protokube.agent.etcd.spacewatch import EVERY, SpaceWatch
from protokube.agent.maintenance import Job
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.errors import Refused, TryLater
from protokube.etcd import Alarm, KeyValue, Status
from protokube.etcd.prefix_sizes import PAGE, biggest
from protokube.host.supervised import Supervised, Workers
from protokube.members.remedy import Remedy, decode, encode
from protokube.members.start_values import Listed
from protokube.store import layout
from protokube.store.memory import MemoryStore

PATH = layout.etcd_maintenance("laptop", "main")
MB = 2**20
NAMES = ("etcd-a", "etcd-b", "etcd-c")


@dataclass
class Far:
    """Three members that answer what the test says; the first leads."""

    raised: tuple[Alarm, ...] = ()
    size: int = 20 * MB
    revision: int = 10
    cluster: int = 1
    calls: list[str] = field(default_factory=list)
    fails: Exception | None = None
    keys: dict[str, str] = field(default_factory=dict)
    before_answer: Callable[[], None] = lambda: None

    def status(self, endpoint: str) -> Status:
        self.before_answer()
        errors = tuple(f"alarm:{each.name}" for each in self.raised)
        return Status(
            cluster_id=self.cluster, member_id=NAMES.index(endpoint) + 1, leader=1, revision=self.revision, raft_term=1,
            raft_index=9, applied_index=9, db_size=self.size, version="3.5.21", learner=False, errors=errors,
            db_size_in_use=MB,
        )  # fmt: skip

    def members(self) -> list[Listed]:
        return [
            Listed(id=number, name=name, peer_urls=(name,), client_urls=(name,)) for number, name in enumerate(NAMES, 1)
        ]

    def alarms(self) -> tuple[Alarm, ...]:
        return self.raised

    def defragment(self, endpoint: str) -> None:
        self.calls.append(f"defragment {endpoint}")
        if self.fails is not None:
            raise self.fails

    def compact(self, revision: int) -> None:
        self.calls.append(f"compact {revision}")

    def page(self, endpoint: str, start: str, limit: int, *, values: bool = False) -> list[KeyValue]:
        self.calls.append("page")
        found = [each for each in sorted(self.keys) if each >= start][:limit]
        return [KeyValue(key=key, value=self.keys[key] if values else "", lease=0, mod_revision=1) for key in found]


@dataclass
class Stage:
    """One master, which holds one member."""

    far: Far
    clock: FakeClock
    round_: Round
    watch: SpaceWatch
    store: MemoryStore

    def round(self, *, look: bool = True) -> Report:
        if look:
            self.watch.tick()
        self.round_.report = Report()
        space.sync(self.round_)
        return self.round_.report

    def record(self, remedy: Remedy) -> None:
        self.store.put(PATH, encode(remedy))


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Stage]:
    def build(short: str = "b", *, compact: bool = False, **options: Any) -> Stage:
        far, clock, store = Far(), FakeClock(), a_store(request.node.name)
        etcd: Any = far
        watch = SpaceWatch({"main": etcd}, HostClock(clock), **options)
        wanted = wanted_of()
        small = {"quota-backend-bytes": 16 * MB}
        members = tuple(replace(each, settings=each.settings | small) for each in wanted.etcd[0].members)
        wanted = replace(wanted, etcd=(replace(wanted.etcd[0], members=members, compact=compact),))
        round_ = a_round(tmp_path, wanted=wanted, clock=HostClock(clock), store=store, space=watch)
        home = a_mounted_volume(round_, "vol-1", member=short)
        home.point.mkdir(parents=True)
        link = round_.edges.inside("/etc/kubernetes/manifests") / home.etcd.pod.file_name
        link.parent.mkdir(parents=True)
        link.symlink_to("/mnt/master-vol-1/k8s.io/manifests/etcd.manifest")
        round_.mounted.append(home)
        made = Stage(far, clock, round_, watch, store)
        made.round()  # the watch learns what we hold
        return made

    return build


def inline(work: Callable[[], None]) -> None:
    work()


def full(stage: Stage) -> None:
    stage.far.raised = (Alarm(2, "NOSPACE"),)
    stage.clock.advance(EVERY)


def test_a_calm_etcd_is_asked_for_its_status_twice_a_minute_and_nothing_is_reported(make: Callable[..., Stage]) -> None:
    stage = make()
    stage.far.size = MB
    for _ in range(60):
        assert stage.round().sentence() == ""
        stage.clock.advance(1)
    assert stage.store.list_paths() == (layout.etcd_generation("laptop", "main"),)
    assert stage.far.calls == []


def test_a_member_is_defragmented_in_its_turn_and_the_record_says_so_before_and_after(
    make: Callable[..., Stage],
) -> None:
    waiting: list[Callable[[], None]] = []
    stage = make("b", spawn=waiting.append)
    full(stage)

    assert "defragmenting etcd-b" in stage.round().sentence()
    before = decode(stage.store.read(PATH).data)
    assert before is not None
    assert (before.turn, before.done) == (2, ())
    assert stage.far.calls == []
    assert "defragmenting etcd-b" in stage.round().sentence(), "the round goes on meanwhile"
    waiting.pop()()
    assert "defragmented etcd-b" in stage.round().sentence()
    after = decode(stage.store.read(PATH).data)
    assert after is not None
    assert (after.turn, after.done) == (0, (2,))
    assert stage.far.calls == ["defragment etcd-b"]


def test_a_job_that_fails_keeps_its_turn_and_is_tried_again(make: Callable[..., Stage]) -> None:
    stage = make("b", spawn=inline)
    full(stage)
    stage.far.fails = TryLater("etcd-b did not answer")
    stage.round()
    assert "failed and is tried again: etcd-b did not answer" in stage.round().sentence()
    stage.far.fails = Refused("not allowed")
    stage.round()
    (note,) = stage.round().person
    assert note.text == "not allowed"
    stage.far.fails = None
    stage.round()
    stage.round()
    assert stage.far.calls.count("defragment etcd-b") == 3
    record = decode(stage.store.read(PATH).data)
    assert record is not None
    assert record.done == (2,)


def test_a_result_is_kept_until_the_store_has_its_record(make: Callable[..., Stage]) -> None:
    stage = make("b", spawn=inline)
    full(stage)
    stage.round()
    store = ShakyStore(stage.store)
    store.down = True
    stage.round_.edges.store = store
    assert "defragmented" not in stage.round().sentence()
    store.down = False
    assert "defragmented etcd-b" in stage.round().sentence()
    assert stage.far.calls == ["defragment etcd-b"]
    record = decode(stage.store.read(PATH).data)
    assert record is not None
    assert record.done == (2,)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_dies_is_reported_as_a_bug(make: Callable[..., Stage]) -> None:
    stage = make("b")
    full(stage)
    stage.far.fails = ZeroDivisionError("a bug")
    stage.round()
    job = stage.watch.job("main")
    assert job is not None
    assert eventually(lambda: "" if job.ended else "it runs") == ""
    for thread in threading.enumerate():
        if thread.name == "etcd maintenance":
            thread.join()  # its traceback belongs to this test
    (bug,) = stage.round(look=False).bugs
    assert "defragmenting etcd-b: its thread ended without a result" in bug.text


def divide_by_zero() -> None:
    raise ZeroDivisionError("a bug")


def test_a_watch_that_meets_a_bug_is_tried_again_and_reported_until_it_goes_on(make: Callable[..., Stage]) -> None:
    stage = make("b")
    stage.far.size, stage.far.before_answer = MB, divide_by_zero
    stage.clock.advance(EVERY)
    watch = Supervised("space", stage.watch.work)
    stage.round_.edges.workers = Workers([watch])
    watch.start()
    assert eventually(lambda: "" if watch.failures else "it goes on") == ""
    threads.sync(stage.round_)
    assert "thread space failed and is tried again: ZeroDivisionError" in stage.round_.report.sentence()
    stage.far.before_answer = lambda: None
    assert eventually(lambda: "" if watch.trouble() is None else "it does not go on") == ""
    watch.stop()


def test_a_master_that_loses_the_race_for_a_turn_does_nothing(make: Callable[..., Stage]) -> None:
    stage = make("b", spawn=inline)
    full(stage)
    now = stage.clock.wall
    stage.record(Remedy(began=now, turn=3))
    assert "etcd-c is defragmented first" in stage.round().sentence()
    assert stage.far.calls == []


def test_what_was_seen_before_the_record_changed_is_not_judged(make: Callable[..., Stage]) -> None:
    stage = make("b", spawn=inline)
    full(stage)
    stage.record(Remedy(began=stage.clock.wall, turn=3))
    stage.round()
    stage.clock.advance(0.5)
    stage.record(Remedy(began=stage.clock.wall, done=(3,)))
    assert "asked again, since the record of the remedy changed" in stage.round(look=False).sentence()
    stage.clock.advance(0.5)
    assert "defragmenting etcd-b" in stage.round().sentence()


def test_a_record_that_cannot_be_read_stops_everything(make: Callable[..., Stage]) -> None:
    stage = make("b", spawn=inline)
    full(stage)
    stage.store.put(PATH, b"{")
    (note,) = stage.round().person
    assert "maintenance.json in the state store cannot be read" in note.text
    assert stage.far.calls == []


def test_the_revisions_of_another_cluster_are_forgotten(make: Callable[..., Stage]) -> None:
    stage = make("a", compact=True, spawn=inline)
    stage.far.revision = 5000
    for _ in range(30):
        stage.clock.advance(EVERY)
        stage.round()
    assert max(each.age for each in stage.watch.samples("main")) >= 600
    stage.far.cluster, stage.far.revision = 2, 100
    full(stage)
    stage.round()
    assert [each.revision for each in stage.watch.samples("main")] == [100]
    assert stage.far.calls.count("compact 5000") == 0


def test_what_fills_it_is_read_once_for_each_alarm_and_by_the_leader_s_holder_alone(
    make: Callable[..., Stage],
) -> None:
    stage = make("b", spawn=inline)
    assert pages_read(stage) == 0
    stage.far.raised = ()
    stage.round_.mounted[:] = [a_mounted_volume(stage.round_, "vol-1", member="a")]
    stage.clock.advance(EVERY)
    stage.round()
    assert pages_read(stage) == 1


def pages_read(stage: Stage) -> int:
    """While an alarm is raised for a while."""
    full(stage)
    for _ in range(5):
        stage.clock.advance(3)
        stage.round()
    return stage.far.calls.count("page")


def test_all_keys_are_counted_page_by_page_and_only_a_few_values_are_read() -> None:
    far = Far(keys={f"/registry/pods/ns/{number:05}": "x" * 100 for number in range(2 * PAGE + 5)})
    far.keys |= {"/registry/secrets/ns/big": "x" * 900_000}
    etcd: Any = far

    found = biggest(etcd, "etcd-a")

    assert [(each.prefix, each.keys) for each in found] == [("/registry/secrets", 1), ("/registry/pods", 2 * PAGE + 5)]
    assert abs(found[1].bytes - 123 * (2 * PAGE + 5)) < 1000
    assert len(far.calls) <= 3 + 9


def test_a_job_is_started_only_when_none_runs(make: Callable[..., Stage]) -> None:
    waiting: list[Callable[[], None]] = []
    stage = make("b", spawn=waiting.append)
    job = Job("working", "worked", None, None)
    stage.watch.start("main", job, lambda: None)
    full(stage)
    assert "working" in stage.round().sentence()
    assert len(waiting) == 1
