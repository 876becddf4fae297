"""The step of the round that takes a revision: when the record and the revisions are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.agent import a_round
from builders.revisions import CLUSTER
from clusters.delivery import LIVE, TWO, Bench
from clusters.scenario.edges import ShakyStore
from protokube.agent import links
from protokube.agent.delivery import present, revision
from protokube.agent.delivery.revision import EVERY, LOOK, Sight
from protokube.errors import Refused, TryLater
from protokube.host.running import Runs
from protokube.launch.revisions import put_in_force
from protokube.store import layout
from protokube.store.memory import MemoryStore


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


def test_what_this_master_runs_is_read_once_in_a_round(bench: Bench) -> None:
    sight = Sight(bench.a_round(), bench.record)
    assert sight.restarts() == ("etcd main",)
    (bench.root / present.PRESENT).unlink()

    assert (sight.restarts(), sight.forbidden()) == (("etcd main",), ())
    with pytest.raises(Refused, match="the present revision of this master cannot be read"):
        Sight(bench.a_round(), bench.record).restarts()


# What runs otherwise than its manifest says.


def linked(bench: Bench) -> None:
    """The kubelet finds the manifest of the member."""
    round_ = bench.a_round()
    (disk,) = round_.mounted
    link = links.link_of(round_, disk)
    link.parent.mkdir(parents=True)
    link.symlink_to(f"/mnt/master-{disk.volume}/{link.name}")


def drifted(bench: Bench, seconds: float) -> list[str]:
    return [each.about for each in bench.sync(seconds).report.warnings if "other arguments" in each.text]


def test_a_member_that_runs_with_other_arguments_is_reported_from_the_second_look_on(tmp_path: Path) -> None:
    """A member that has just restarted for another reason is seen once with its former arguments."""
    bench = Bench(tmp_path, "drift")
    linked(bench)
    bench.programs.state = Runs.OLD
    assert drifted(bench, LOOK) == []
    assert drifted(bench, 1.0) == [], "processes are not compared in each round"
    assert drifted(bench, LOOK) == ["main/a"]
    assert drifted(bench, 1.0) == ["main/a"]
    bench.programs.state = Runs.CURRENT

    assert drifted(bench, LOOK) == []


def test_a_member_that_does_not_run_has_no_other_arguments(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "ended")
    linked(bench)
    bench.programs.state = Runs.NOT

    assert [drifted(bench, LOOK) for _ in range(3)] == [[], [], []]
