"""Another version of etcd on a real cluster: 3.4 of Debian 12 to 3.5 of Debian 13, while a client writes.

One cluster for all tests here, which go up step by step.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from builders.command import COMMAND, Answer, environment
from clusters.etcd import etcd_binary
from clusters.real import RealCluster, until
from host.debian import unpacked
from protokube.agent.delivery import present
from protokube.binaries.etcd import ETCD
from protokube.launch import revisions
from protokube.launch.rollout import Failure, Rollout, State
from protokube.local.drill.writer import as_found, lost
from protokube.store import layout
from protokube.store.open import open_store

NEWER = "trixie"
SECONDS = 120.0


@pytest.fixture(scope="module")
def newer() -> Path:
    """The folder of a newer etcd than this machine's packages have."""
    return unpacked("etcd-server", NEWER) / "usr" / "bin"


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealCluster]:
    with RealCluster() as made:
        answer = up(made, Path(etcd_binary("3.4")).parent, "--output", "json")
        assert answer.code == 0, answer.err
        made.told = json.loads(answer.out)
        yield made
        (made.state / "spec.yaml").unlink(missing_ok=True)


def spec_of(cluster: RealCluster, folder: Path) -> Path:
    version = ETCD.version(folder / "etcd")
    return cluster.write_spec(masters=3, etcdClusters=[{"name": "main", "version": version}])


def words_of(cluster: RealCluster, folder: Path, *more: str) -> list[str]:
    spec = str(spec_of(cluster, folder))
    return ["up", spec, "--kubernetes", "none", "--timeout", f"{SECONDS:g}", *more]


def up(cluster: RealCluster, folder: Path, *more: str) -> Answer:
    """With the etcd of this folder, and its version in the spec."""
    return cluster.run(*words_of(cluster, folder, *more), seconds=400, **{ETCD.chosen: str(folder)})


def record(cluster: RealCluster) -> Rollout:
    found = revisions.read_rollout(open_store(f"file://{cluster.paths.store}"), cluster.name)
    assert found is not None
    return found


def versions(cluster: RealCluster) -> list[str]:
    return sorted(each.version for each in cluster.client().survey(5).values())


def spec_in_store(cluster: RealCluster) -> bytes:
    store = open_store(f"file://{cluster.paths.store}")
    return store.read(layout.config(cluster.name)).data


def backups(cluster: RealCluster) -> list[Path]:
    return sorted((cluster.paths.store / cluster.name / "backups").rglob("*.db"))


def test_the_plan_names_the_step_and_that_there_is_no_way_back(cluster: RealCluster, newer: Path) -> None:
    shown = up(cluster, newer, "--dry-run")

    assert shown.code == 0, shown.err
    assert "etcdClusters.main.version  3.4." in shown.out
    assert "no way back: etcd main 3.4 -> 3.5" in shown.out
    assert backups(cluster) == []


def test_an_etcd_that_does_not_read_a_copy_of_the_data_is_found_out_before_any_member_restarts(
    cluster: RealCluster, newer: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "etcd"
    program = (
        f'#!/bin/sh\n[ "$1" = --version ] && exec {newer}/etcd --version\necho "cannot read the data" >&2\nexit 1\n'
    )
    broken.write_text(program)
    broken.chmod(0o755)
    before, written = record(cluster), spec_in_store(cluster)

    ran = up(cluster, tmp_path)

    assert ran.code == 4, ran.err
    assert "rehearsal failed, and nothing was changed" in ran.err
    assert "cannot read the data" in ran.err
    assert record(cluster) == before
    assert spec_in_store(cluster) == written
    assert backups(cluster) == []
    assert {each.partition(".")[2].partition(".")[0] for each in versions(cluster)} == {"4"}


def test_members_are_upgraded_one_after_the_other_and_no_write_is_lost_though_command_and_host_are_killed(
    cluster: RealCluster, newer: Path
) -> None:
    command = [*COMMAND, *words_of(cluster, newer)]
    env = environment(PROTOKUBE_STATE=str(cluster.state), **{ETCD.chosen: str(newer)})
    with cluster.writing() as writer, subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as typed:
        turn = until(lambda: record(cluster).turn, "the first master takes its turn", every=0.02)
        typed.send_signal(signal.SIGKILL)
        os.kill(cluster.agent_of(turn.name), signal.SIGKILL)
        until(lambda: len(set(versions(cluster))) == 2, "two versions run side by side")
        cluster.admin.call("kill_host", host=cluster.host_of("c"))
        _, first = typed.communicate()
        ran = up(cluster, newer)
        log = writer.stop()

    assert ran.code == 0, ran.err
    assert "restored and started with 3.4." in first
    assert "the snapshot of revision 2, which is being rolled out" in ran.err, "none of data that is half new"
    assert len(backups(cluster)) == 1
    assert lost(log, as_found(cluster.client().read(log.prefix))) == ()
    assert set(versions(cluster)) == {ETCD.version(newer / "etcd")}
    assert record(cluster).state is State.DONE
    kept = revisions.read_revision(open_store(f"file://{cluster.paths.store}"), cluster.name, 2).snapshots
    assert cluster.paths.store / kept["main"] in backups(cluster)


def test_after_that_nobody_returns_to_the_old_version(cluster: RealCluster) -> None:
    until(lambda: cluster.client().cluster_version() == "3.5.0", "etcd raises its version, some seconds later")
    undone = cluster.run("rollout", "undo", "--to", "1", "--cluster", cluster.name)
    typed = up(cluster, Path(etcd_binary("3.4")).parent)

    assert (undone.code, typed.code) == (4, 2)
    for answer in (undone, typed):
        assert "its data is that of 3.5.0, which 3.4 cannot read" in answer.err
    assert record(cluster).wanted == 2


def test_a_rollout_that_stopped_after_all_members_were_raised_goes_on_without_the_old_program(
    cluster: RealCluster, newer: Path
) -> None:
    """As if the command had been killed between the last member's restart and the end of the rollout."""
    store = open_store(f"file://{cluster.paths.store}")
    failure = Failure(machine="i-1", name="master-a", revision=2, text="the API server does not answer")
    revisions.change_rollout(
        store, cluster.name, lambda known: replace(known, before=1, state=State.STOPPED, failure=failure)
    )

    undone = cluster.run("rollout", "undo", "--cluster", cluster.name)
    ran = up(cluster, newer)

    assert undone.code == 4
    assert "its data is that of 3.5.0, which 3.4 cannot read" in undone.err
    assert ran.code == 0, ran.err
    assert "its members have agreed on 3.5.0 already" in ran.err
    assert "all masters ran 1 last" in ran.err
    assert record(cluster).state is State.DONE
    assert len(backups(cluster)) == 1


def test_a_replaced_host_starts_with_the_new_version(cluster: RealCluster, newer: Path) -> None:
    gone = cluster.host_of("a")
    cluster.admin.call("kill_host", host=gone)

    until(lambda: cluster.host_of("a") != gone and cluster.healthy() == {"main/a", "main/b", "main/c"}, "it is back")
    assert set(versions(cluster)) == {ETCD.version(newer / "etcd")}


def test_a_host_that_is_replaced_after_a_stop_runs_the_etcd_that_its_data_needs(
    cluster: RealCluster, newer: Path
) -> None:
    """The record says that not all masters ran the new revision; its data says that they did."""
    gone, store = cluster.host_of("b"), open_store(f"file://{cluster.paths.store}")
    failure = Failure(machine="i-0", name="master-x", revision=2, text="something else did not come up")
    revisions.change_rollout(
        store, cluster.name, lambda known: replace(known, state=State.STOPPED, before=1, failure=failure)
    )
    cluster.admin.call("kill_host", host=gone)

    until(lambda: cluster.host_of("b") != gone and cluster.healthy() == {"main/a", "main/b", "main/c"}, "it is back")

    assert set(versions(cluster)) == {ETCD.version(newer / "etcd")}
    started = (cluster.paths.host(cluster.host_of("b")) / present.FORMER).read_bytes()
    assert revisions.decode_revision(started).number == 1, "it was started with the old one"
