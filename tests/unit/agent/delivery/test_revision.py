"""The step of the round that takes a revision: when the record is read, and what becomes of each action."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from builders.agent import Alone, Machines, a_machine, a_mounted_volume, a_round
from builders.revisions import CLUSTER, a_revision, keep, with_settings
from clusters.scenario.edges import FakeClock, HostClock, ShakyStore
from clusters.scenario.host import wanted_of
from protokube.agent.delivery import present, revision
from protokube.agent.delivery.decide import (
    Action,
    Complete,
    EndTurn,
    Free,
    GoBack,
    Nothing,
    Person,
    Stop,
    Switch,
    TakeTurn,
    Wait,
)
from protokube.agent.delivery.revision import EVERY, GONE, LISTS, SOON, apply
from protokube.agent.edges import MasterRevision
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.errors import Refused, TryLater
from protokube.etcd import Status
from protokube.host import Block, Format, Job, WriteTest
from protokube.host.running import Command, Runs
from protokube.launch.revisions import Revision, change_rollout, put_in_force, read_rollout
from protokube.launch.rollout import Failure, Rollout, State, Turn
from protokube.members.start_values import Listed
from protokube.store import layout
from protokube.store.memory import MemoryStore

ONE = a_revision(1, wanted_of())
TWO = a_revision(2, with_settings(**{"snapshot-count": 2}))
THREE = a_revision(3, with_settings(**{"snapshot-count": 3}))
QUIET = a_revision(2, replace(wanted_of(), certificate_lifetime=86400.0))
MOVED = a_revision(2, replace(wanted_of(), api_internal_name="elsewhere.example.com"))
ME, OTHER, THIRD = a_machine("i-1"), a_machine("i-2"), a_machine("i-3")
LIVE = {each.id: each.address for each in (ME, OTHER, THIRD)}


@dataclass
class Etcd:
    """Three members that are well."""

    ill: set[str] = field(default_factory=set)

    def members(self) -> Sequence[Listed]:
        return [
            Listed(id=ord(each.short), name=each.name, peer_urls=(each.peer_url,), client_urls=(each.client_url,))
            for each in wanted_of().etcd[0].members
        ]

    def survey(self, _seconds: float, unlikely: str = "") -> Mapping[str, Status]:
        status = Status(
            cluster_id=1, member_id=1, leader=1, revision=9, raft_term=2, raft_index=5, applied_index=5, db_size=1,
            version="3.6.1", learner=False,
        )  # fmt: skip
        return {each.name: status for each in wanted_of().etcd[0].members if each.name not in self.ill}


@dataclass
class Programs:
    state: Runs = Runs.CURRENT

    def runs(self, _command: Command) -> Runs:
        return self.state


@dataclass
class Disks:
    busy: tuple[tuple[Job, float], ...] = ()

    def running(self) -> tuple[tuple[Job, float], ...]:
        return self.busy


@dataclass
class Volumes:
    consistent: bool = True


class Bench:
    """One master of three, round after round; its agent starts again whenever it asks for that."""

    def __init__(self, root: Path, name: str, *known: Revision) -> None:
        self.store = ShakyStore(MemoryStore(name))
        keep(self.store, ONE, *known)
        put_in_force(self.store, CLUSTER, ONE, running=False)
        self.clock, self.presence, self.etcd = FakeClock(), Alone(LIVE), Etcd()
        self.programs, self.disks, self.volumes = Programs(), Disks(), Volumes()
        self.machines = Machines(ME, OTHER, THIRD)
        self.root = root
        self.start()

    def start(self) -> None:
        """The agent, with nothing in memory."""
        wanted = present.at_start(self.root, ONE.master, self.store)
        self.edges = a_round(
            self.root, me=ME, clock=HostClock(self.clock), store=self.store, presence=self.presence,
            etcd={"main": self.etcd}, processes=self.programs, disks=self.disks, volumes=self.volumes,
            machines=self.machines,
        ).edges  # fmt: skip
        self.wanted = wanted

    def a_round(self) -> Round:
        round_ = Round(edges=self.edges, wanted=self.wanted, report=Report())
        round_.mounted = [a_mounted_volume(round_)]
        return round_

    def sync(self, seconds: float = 0.0) -> Round:
        """One round, so many seconds later."""
        self.clock.advance(seconds)
        round_ = self.a_round()
        revision.sync(round_)
        round_.forget()
        if round_.restart_agent:
            self.start()
        return round_

    def until(self, reached: Callable[[], bool], rounds: int = 200) -> None:
        for _ in range(rounds):
            if reached():
                return
            self.sync(SOON)
        raise AssertionError(f"never reached: {self.record}")

    @property
    def record(self) -> Rollout:
        found = read_rollout(self.store.inner, CLUSTER)
        assert found is not None
        return found

    def change(self, **fields: Any) -> None:
        """Another writer of the record."""
        change_rollout(self.store.inner, CLUSTER, lambda known: replace(known, **fields))

    @property
    def runs(self) -> tuple[int, int | None]:
        """The present and the former revision."""
        former = present.read(self.root / present.FORMER)
        return self.wanted.revision, former.number if former else None

    def apply(self, action: Action) -> Round:
        round_ = self.a_round()
        apply(round_, self.record, action)
        return round_


@pytest.fixture
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Bench:
    """A master on 1, where 2 was put in force; all the others are well."""
    made = Bench(tmp_path, request.node.name, TWO)
    put_in_force(made.store, CLUSTER, TWO, running=True)
    return made


def turn_of(machine: str, at: float = 5.0) -> Turn:
    return Turn(machine=machine, name=machine, at=at)


# When the record is read.


def test_launch_data_without_a_revision_touch_nothing(tmp_path: Path) -> None:
    round_ = a_round(tmp_path)
    revision.sync(round_)

    assert round_.report.sentence() == ""


def test_a_settled_record_is_read_once_a_minute(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "settled")
    bench.sync()
    reads = bench.store.reads
    for _ in range(5):
        bench.sync(EVERY / 6)
    assert bench.store.reads == reads
    bench.sync(EVERY / 6)

    assert bench.store.reads == reads + 1


def test_an_announcement_has_it_read_at_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "announced", TWO)
    bench.sync()
    put_in_force(bench.store, CLUSTER, TWO, running=True)
    bench.etcd.ill = {"etcd-b"}
    assert bench.sync(1.0).report.sentence() == ""
    bench.presence.hint = "2 at 100"

    assert "etcd-b does not answer" in bench.sync(1.0).report.sentence()


def test_without_a_quorum_the_announcement_is_not_lost(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "unknown", TWO)
    bench.presence.hint = "1 at 50"
    bench.sync()
    reads = bench.store.reads
    bench.presence.live_masters = None
    bench.sync(1.0)
    bench.presence.live_masters = LIVE
    bench.sync(1.0)
    assert bench.store.reads == reads, "the same hint as before announces nothing"
    bench.presence.hint = "2 at 100"
    bench.sync(1.0)

    assert bench.store.reads == reads + 1


def test_without_any_record_nothing_happens_and_it_is_looked_for_once_a_minute(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "without")
    bench.edges.store = ShakyStore(MemoryStore("empty"))
    for _ in range(3):
        assert bench.sync(1.0).report.sentence() == ""

    assert not bench.sync(EVERY).restart_agent


def test_a_record_that_cannot_be_read_needs_a_person(bench: Bench) -> None:
    bench.store.inner.put(layout.rollout(CLUSTER), b"{}")

    with pytest.raises(Refused, match="cannot be read"):
        bench.sync()
    assert bench.runs == (1, None)


def test_a_store_that_is_away_is_waited_for(bench: Bench) -> None:
    bench.store.down = True

    with pytest.raises(TryLater):
        bench.sync()
    bench.store.down = False
    bench.until(lambda: bench.runs == (2, 1))


def test_a_wanted_revision_that_is_damaged_needs_a_person_and_changes_nothing(bench: Bench) -> None:
    bench.store.inner.put(layout.revision(CLUSTER, 2), b"{}")

    with pytest.raises(Refused, match="this is no revision"):
        bench.sync()
    assert (bench.runs, bench.record.turn) == ((1, None), None)


# From one revision to the next.


def test_a_master_takes_its_turn_switches_comes_up_and_ends_its_turn(bench: Bench) -> None:
    bench.until(lambda: bench.record.turn is not None)
    assert bench.record.turn == Turn(machine="i-1", name="i-1", at=bench.clock.wall, revision=1)
    bench.programs.state = Runs.OLD
    bench.until(lambda: bench.runs == (2, 1))
    assert "has not restarted yet" in bench.sync(SOON).report.sentence()
    bench.programs.state = Runs.CURRENT
    bench.until(lambda: bench.record.turn is None)

    assert bench.record == Rollout(wanted=2, before=1, state=State.ROLLING)
    assert [each.text for each in bench.record.events][-2:] == [
        "takes revision 2: restarts etcd main",
        "runs revision 2",
    ]


def test_rounds_follow_each_other_while_a_rollout_concerns_this_master(bench: Bench) -> None:
    assert bench.sync().next_within <= SOON


def test_a_quiet_revision_is_taken_without_a_turn(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "quiet", QUIET)
    put_in_force(bench.store, CLUSTER, QUIET, running=True)
    bench.etcd.ill = {"etcd-b"}
    bench.sync()

    assert bench.runs == (2, 1)
    assert not [each for each in bench.record.events if "takes" in each.text]


def test_a_revision_that_cannot_be_taken_needs_a_person(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "moved", MOVED)
    put_in_force(bench.store, CLUSTER, MOVED, running=True)
    round_ = bench.sync()

    assert [each.text.partition(":")[0] for each in round_.report.person] == ["revision 2 cannot be taken"]
    assert bench.runs == (1, None)


def test_the_elected_master_completes_it_when_all_run_it(bench: Bench) -> None:
    bench.until(lambda: bench.record.turn is None and bench.runs[0] == 2)
    bench.presence.is_elected = True

    def seen(*numbers: int) -> str:
        bench.presence.known_revisions = [
            MasterRevision(name=f"master-{short}", revision=number)
            for short, number in zip("abc", numbers, strict=False)
        ]
        return bench.sync(SOON).report.sentence()

    bench.presence.known_revisions = None
    assert "etcd has no quorum" in bench.sync(SOON).report.sentence()
    assert "master-b, master-c do not run it yet" in seen(2, 1, 0)
    assert "master-c does not run it yet" in seen(2, 2, 1)
    assert "2 of 3 masters are up" in seen(2, 2)
    assert "all masters run revision 2" in seen(2, 2, 2)
    assert bench.record.state is State.DONE


def test_a_revision_that_does_not_come_up_stops_and_the_master_returns(bench: Bench) -> None:
    bench.until(lambda: bench.record.turn is not None)
    bench.programs.state = Runs.NOT
    bench.until(lambda: bench.runs[0] == 2)
    switched = bench.clock.seconds
    bench.until(lambda: bench.record.state is State.STOPPED)
    assert 60 <= bench.clock.seconds - switched < 70
    bench.until(lambda: bench.runs == (1, 2))
    assert bench.record.turn is not None, "its turn ends when it is well again"
    bench.programs.state = Runs.CURRENT
    bench.until(lambda: bench.record.turn is None)

    failure = bench.record.failure
    assert failure is not None
    assert (failure.machine, failure.revision, failure.text) == ("i-1", 2, "main/a: it does not run after 60 s")
    assert bench.record.events[-1].text == "is back on revision 1"


def test_an_old_process_that_takes_long_to_end_is_no_failure(bench: Bench) -> None:
    """For a second nothing runs, a hundred seconds after the switch."""
    bench.until(lambda: bench.record.turn is not None)
    bench.programs.state = Runs.OLD
    bench.until(lambda: bench.runs[0] == 2)
    for _ in range(50):
        bench.sync(SOON)
    bench.programs.state = Runs.NOT
    bench.sync(SOON)
    assert bench.record.state is State.ROLLING
    bench.programs.state = Runs.CURRENT
    bench.until(lambda: bench.record.turn is None)

    assert bench.runs == (2, 1)


def test_a_second_bad_revision_leads_back_to_the_last_good_one_and_not_to_the_first_bad_one(bench: Bench) -> None:
    """An operator who sees it fail puts a correction in force at once, and that fails too."""
    keep(bench.store, THREE)
    bench.until(lambda: bench.record.turn is not None)
    bench.programs.state = Runs.NOT
    bench.until(lambda: bench.runs[0] == 2)
    put_in_force(bench.store, CLUSTER, THREE, running=True)
    bench.until(lambda: bench.runs == (1, 2))
    bench.until(lambda: bench.runs == (3, 1))
    bench.until(lambda: bench.record.state is State.STOPPED)
    bench.until(lambda: bench.runs == (1, 3))
    bench.programs.state = Runs.CURRENT
    bench.until(lambda: bench.record.turn is None)

    assert bench.record.events[-1].text == "is back on revision 1"


def test_an_agent_that_dies_counts_anew(bench: Bench) -> None:
    bench.until(lambda: bench.record.turn is not None)
    bench.programs.state = Runs.NOT
    bench.until(lambda: bench.runs[0] == 2)
    for _ in range(25):
        bench.sync(SOON)
    bench.start()
    for _ in range(25):
        bench.sync(SOON)

    assert bench.record.state is State.ROLLING


# Each action.


def test_nothing_and_waiting_and_a_need_change_nothing(bench: Bench) -> None:
    before = bench.record
    assert bench.apply(Nothing()).report.sentence() == ""
    assert bench.apply(Wait("others first")).report.sentence() == "revision waits: others first"
    assert bench.apply(Person("it stopped", "look")).report.person[0].hint == "look"

    assert (bench.record, bench.runs) == (before, (1, None))


def test_a_turn_is_written_before_anything_restarts(bench: Bench) -> None:
    round_ = bench.apply(TakeTurn(("etcd main", "kubelet")))

    assert bench.record.turn == Turn(machine="i-1", name="i-1", at=bench.clock.wall, revision=1)
    assert not round_.restart_agent
    assert round_.report.sentence() == "revision takes revision 2: restarts etcd main, kubelet"


def test_a_switch_keeps_the_present_revision_as_the_former_and_restarts_the_agent(bench: Bench) -> None:
    round_ = bench.apply(Switch(2))
    bench.start()

    assert round_.restart_agent
    assert bench.runs == (2, 1)


def test_the_agent_does_not_restart_while_a_disk_is_formatted(bench: Bench) -> None:
    block = Block(path=Path("/dev/loop7"), number=(7, 7), serial="vol-1", size=2**30)
    bench.disks.busy = ((Format(block=block, uuid="00000000-0000-4000-8000-000000000001"), 1.0),)
    round_ = bench.apply(Switch(2))

    assert not round_.restart_agent
    assert "a disk is being formatted" in round_.report.sentence()
    assert bench.runs == (1, None)


def test_a_test_write_or_a_mount_that_nobody_collected_does_not_delay_it(bench: Bench) -> None:
    bench.disks.busy = ((WriteTest(point=Path("/mnt/master-vol-1"), number=(7, 7), begun=0.0), 1.0),)

    assert bench.apply(Switch(2)).restart_agent


def test_a_return_restarts_the_agent_with_the_former_revision(bench: Bench) -> None:
    bench.apply(Switch(2))
    bench.start()
    round_ = bench.apply(GoBack())
    bench.start()

    assert round_.restart_agent
    assert bench.runs == (1, 2)


def test_the_end_of_a_turn_a_stop_and_the_end_of_all_are_written(bench: Bench) -> None:
    bench.change(turn=turn_of("i-1"))
    bench.apply(Stop("etcd: it does not run"))
    assert (bench.record.state, bench.record.turn) == (State.STOPPED, turn_of("i-1"))
    assert bench.record.failure == Failure(machine="i-1", name="i-1", revision=1, text="etcd: it does not run")
    bench.apply(EndTurn("is back on revision 1"))
    assert bench.record.turn is None
    bench.change(state=State.ROLLING)
    bench.apply(Complete())

    assert bench.record.state is State.DONE


WRITES = (TakeTurn(("etcd main",)), EndTurn("x"), Stop("x"), Free("i-2"), Complete())


def before(bench: Bench, action: Action) -> None:
    bench.change(turn=None if isinstance(action, TakeTurn | Complete) else turn_of("i-1"))


@pytest.mark.parametrize("action", WRITES, ids=lambda each: type(each).__name__)
def test_a_record_that_was_changed_meanwhile_is_not_written_over(bench: Bench, action: Action) -> None:
    before(bench, action)
    round_, seen = bench.a_round(), bench.record
    bench.change(wanted=7)

    with pytest.raises(TryLater, match="changed by another"):
        apply(round_, seen, action)
    assert bench.record == replace(seen, wanted=7)


@pytest.mark.parametrize("action", WRITES, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("how", ["down", "read_only"])
def test_a_record_that_cannot_be_written_stays_and_is_waited_for(bench: Bench, action: Action, how: str) -> None:
    before(bench, action)
    round_, seen = bench.a_round(), bench.record
    setattr(bench.store, how, True)

    with pytest.raises(TryLater):
        apply(round_, seen, action)
    assert bench.record == seen


@pytest.mark.parametrize("action", WRITES, ids=lambda each: type(each).__name__)
def test_after_a_lost_answer_the_record_is_read_again(bench: Bench, action: Action) -> None:
    before(bench, action)
    round_, seen = bench.a_round(), bench.record
    bench.store.answers_lost = True

    with pytest.raises(TryLater):
        apply(round_, seen, action)
    bench.store.answers_lost = False
    assert bench.record != seen
    reads = bench.store.reads
    bench.sync()

    assert bench.store.reads > reads


# A machine that is gone in its turn.


@pytest.fixture
def waiting(bench: Bench) -> Bench:
    """The same, and it is the turn of i-2, whose lease has ended; this master is elected."""
    bench.change(turn=turn_of("i-2"))
    bench.presence.is_elected = True
    bench.presence.live_masters = {ME.id: LIVE[ME.id]}
    return bench


def freed(bench: Bench, rounds: int, seconds: float) -> bool:
    """Whether the turn of the machine was ended within so many rounds."""
    turn = bench.record.turn
    for _ in range(rounds):
        bench.sync(seconds)
        if bench.record.turn != turn:
            return True
    return False


def test_a_turn_lasts_as_long_as_its_machine_is_listed(waiting: Bench) -> None:
    assert not freed(waiting, 50, 600.0)


def test_the_provider_is_not_asked_for_a_machine_whose_lease_lives(waiting: Bench) -> None:
    waiting.presence.live_masters = dict(LIVE)
    waiting.machines.listed = (ME, THIRD)

    assert not freed(waiting, 20, GONE)


def test_a_turn_ends_with_its_machine_where_lists_are_consistent(waiting: Bench) -> None:
    waiting.machines.listed = (ME, THIRD)

    assert freed(waiting, 1, SOON)
    assert waiting.record.events[-1].text == "i-2 does not exist any more; its turn is over"


def test_where_lists_lag_several_must_lack_it_for_a_while(waiting: Bench) -> None:
    waiting.volumes.consistent = False
    waiting.machines.listed = (ME, THIRD)

    assert not freed(waiting, 20, GONE / 21), "often, but not for long enough"
    waiting.machines.listed = (ME, OTHER, THIRD)
    waiting.sync(SOON)
    waiting.machines.listed = (ME, THIRD)
    assert not freed(waiting, LISTS - 1, GONE), "for long, but not often enough"
    assert freed(waiting, 1, SOON)


def test_a_list_without_ourselves_proves_nothing(waiting: Bench) -> None:
    waiting.machines.listed = (THIRD,)

    assert not freed(waiting, 20, GONE)


def test_only_the_elected_master_ends_the_turn_of_another(waiting: Bench) -> None:
    waiting.presence.is_elected = False
    waiting.machines.listed = (ME, THIRD)

    assert not freed(waiting, 20, GONE)


def test_what_was_counted_for_one_machine_does_not_end_the_turn_of_the_next(waiting: Bench) -> None:
    """A lagging list lacks a machine that has just taken its turn."""
    waiting.volumes.consistent = False
    waiting.machines.listed = (ME,)
    assert freed(waiting, 2 * LISTS, GONE)
    waiting.change(turn=turn_of("i-3"))

    assert not freed(waiting, 1, SOON)


def test_a_list_that_fails_is_counted_anew(waiting: Bench) -> None:
    class Failing(Machines):
        def list_machines(self) -> Any:
            raise TryLater("the provider does not answer")

    waiting.volumes.consistent = False
    waiting.machines.listed = (ME, THIRD)
    assert not freed(waiting, LISTS - 1, GONE)
    waiting.edges.machines = Failing(ME)
    with pytest.raises(TryLater):
        waiting.sync(SOON)
    waiting.edges.machines = waiting.machines

    assert not freed(waiting, LISTS - 1, GONE)
