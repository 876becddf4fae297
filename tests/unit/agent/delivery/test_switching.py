"""The step of the round that takes a revision: from one revision to the next, and back from a bad one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from builders.revisions import CLUSTER, a_revision, keep, with_settings
from clusters.delivery import Bench
from clusters.scenario.host import wanted_of
from protokube.agent.delivery.revision import SOON
from protokube.agent.edges import MasterRevision
from protokube.host.running import Runs
from protokube.launch.revisions import put_in_force
from protokube.launch.rollout import Rollout, State, Turn

THREE = a_revision(3, with_settings(**{"snapshot-count": 3}))
QUIET = a_revision(2, replace(wanted_of(), certificate_lifetime=86400.0))
MOVED = a_revision(2, replace(wanted_of(), api_internal_name="elsewhere.example.com"))


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
