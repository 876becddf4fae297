"""The step of the round that takes a revision: what each action writes, to the record and to this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from clusters.delivery import Bench, turn_of
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
from protokube.agent.delivery.revision import apply
from protokube.errors import TryLater
from protokube.host import Block, Format, WriteTest
from protokube.launch.rollout import Failure, State, Turn


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
