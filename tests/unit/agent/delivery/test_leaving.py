"""A master whose machine cannot run the wanted revision, and a machine on which nothing works."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from builders.revisions import CLUSTER, a_revision
from clusters.delivery import ME, TWO, Bench, turn_of
from clusters.scenario.host import wanted_of
from protokube.agent.delivery.decide import Leave
from protokube.agent.delivery.health import ENDED, UNSEEN
from protokube.agent.delivery.revision import SOON
from protokube.agent.edges import MasterRevision
from protokube.host import Block, Format
from protokube.host.running import Runs
from protokube.launch.revisions import put_in_force

NODE = a_revision(2, replace(wanted_of(), kubelet_kubeconfig="/kubeconfig"))


@pytest.fixture
def leaving(tmp_path: Path, request: pytest.FixtureRequest) -> Bench:
    """A master on 1, where a revision was put in force that needs another machine; all the others are well."""
    made = Bench(tmp_path, request.node.name, NODE)
    put_in_force(made.store, CLUSTER, NODE, running=True)
    made.edges.launched, made.edges.end_machine = 1, lambda: None
    made.presence.known_revisions = [MasterRevision(name=f"master-{short}", revision=1) for short in "abc"]
    return made


def test_it_takes_its_turn_and_ends_its_machine_in_it(leaving: Bench) -> None:
    leaving.until(lambda: leaving.record.turn is not None)
    assert leaving.record.events[-1].text == "takes revision 2: another machine takes its place"
    round_ = leaving.sync(SOON)

    assert round_.end_machine
    assert not round_.restart_agent
    assert leaving.record.turn is not None
    assert leaving.record.turn.machine == ME.id
    assert leaving.runs == (1, None), "what it runs stays what it ran"


def test_it_stays_while_a_master_is_missing_or_unseen_or_a_member_is_ill(leaving: Bench) -> None:
    everybody = leaving.presence.known_revisions

    def waits() -> str:
        return leaving.sync(SOON).report.sentence()

    leaving.presence.known_revisions = None
    assert UNSEEN in waits()
    leaving.presence.known_revisions = (everybody or [])[:2]
    assert "2 of 3 masters are up" in waits()
    leaving.presence.known_revisions = everybody
    leaving.etcd.ill = {"etcd-c"}
    assert "etcd-c does not answer" in waits()
    leaving.etcd.ill = set()
    leaving.edges.end_machine = None
    assert "nothing replaces a machine that ends" in waits()
    assert leaving.record.turn is None


def test_it_does_not_end_while_a_disk_is_formatted(leaving: Bench) -> None:
    block = Block(path=Path("/dev/loop7"), number=(7, 7), serial="vol-1", size=2**30)
    leaving.disks.busy = ((Format(block=block, uuid="00000000-0000-4000-8000-000000000001"), 1.0),)

    assert not leaving.apply(Leave()).end_machine


def test_one_made_for_a_later_revision_than_is_in_force_asks_for_a_person(leaving: Bench) -> None:
    leaving.edges.launched = 3

    (need,) = leaving.sync().report.person
    assert need.text == "this machine was made for revision 3, which is not in force"
    assert need.hint == "run `protokube up` again as before: it completes what was interrupted"


def test_one_on_which_nothing_has_worked_for_a_minute_needs_no_turn(tmp_path: Path) -> None:
    """It was made for a first attempt, and a second one is in force; it is the turn of a machine that is gone."""
    third = a_revision(3, TWO.master)
    bench = Bench(tmp_path, "stranded", TWO, third)
    put_in_force(bench.store, CLUSTER, TWO, running=True)
    bench.until(lambda: bench.runs[0] == 2)
    put_in_force(bench.store, CLUSTER, third, running=True)
    bench.change(turn=turn_of("i-9"))
    bench.edges.launched, bench.programs.state = 2, Runs.NOT
    bench.etcd.ill = {"etcd-b", "etcd-c"}
    began = bench.clock.seconds
    bench.until(lambda: bench.runs[0] == 3)

    assert bench.clock.seconds - began >= ENDED


def test_one_whose_etcd_runs_waits_for_its_turn(tmp_path: Path) -> None:
    third = a_revision(3, TWO.master)
    bench = Bench(tmp_path, "working", TWO, third)
    put_in_force(bench.store, CLUSTER, TWO, running=True)
    bench.until(lambda: bench.runs[0] == 2)
    put_in_force(bench.store, CLUSTER, third, running=True)
    bench.change(turn=turn_of("i-9"))
    bench.edges.launched = 2
    for _ in range(int(2 * ENDED / SOON)):
        bench.sync(SOON)

    assert bench.runs[0] == 2
