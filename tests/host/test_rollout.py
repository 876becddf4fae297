"""A changed spec on a real cluster: etcd restarts on one master after the other, and a writer loses nothing.

One cluster for all tests here; each puts another configuration in force.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders.command import COMMAND, Answer, environment
from clusters.real import RealCluster, until
from protokube.launch import revisions
from protokube.launch.rollout import Rollout, State, Turn
from protokube.local.drill.writer import as_found, lost
from protokube.store.open import open_store

SECONDS = 120.0
MEMBERS = ("etcd-a", "etcd-b", "etcd-c")


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealCluster]:
    with RealCluster() as made:
        made.up()
        yield made
        (made.state / "spec.yaml").unlink(missing_ok=True)


def spec_of(cluster: RealCluster, main: dict[str, Any] | None = None, **fields: Any) -> Path:
    """A spec of this cluster with other settings of its etcd."""
    return cluster.write_spec(masters=3, etcdClusters=[{"name": "main", **(main or {})}], **fields)


def up(cluster: RealCluster, spec: Path, *words: str) -> Answer:
    return cluster.run("up", str(spec), "--timeout", f"{SECONDS:g}", *words, seconds=400)


def record(cluster: RealCluster) -> Rollout:
    found = revisions.read_rollout(open_store(f"file://{cluster.paths.store}"), cluster.name)
    assert found is not None
    return found


def present(cluster: RealCluster) -> dict[str, int]:
    """The revision of each living master, by its last report."""
    return {host: status["revision"] for host, status in cluster.agents().items()}


def settings(cluster: RealCluster, name: str) -> list[Any]:
    """One setting of etcd, as each host has it in etcd's file."""
    files = [cluster.paths.host(each["name"]) / "etc/kubernetes/config/etcd.yaml" for each in cluster.hosts()]
    lines = [line.partition(": ")[2] for file in files for line in file.read_text().splitlines() if f"{name}:" in line]
    return sorted(lines)


def turn_after(cluster: RealCluster, former: Turn) -> Turn | None:
    """The turn of another master than this one."""
    found = record(cluster).turn
    return found if found is not None and found.machine != former.machine else None


def all_files(folder: Path) -> dict[str, bytes]:
    """But for what agents write there by themselves: marks and reports."""
    files = {str(each.relative_to(folder)): each for each in folder.rglob("*") if each.is_file()}
    return {name: each.read_bytes() for name, each in files.items() if each.parent.name not in ("raft", "agents")}


def test_a_changed_quota_arrives_on_one_master_after_the_other_and_no_write_is_lost(cluster: RealCluster) -> None:
    spec = spec_of(cluster, {"quotaBackendBytes": 600_000_000})
    with cluster.writing() as writer:
        ran = up(cluster, spec)
        log = writer.stop()

    assert ran.code == 0, ran.err
    assert "etcdClusters.main.quotaBackendBytes  536870912 -> 600000000" in ran.err
    assert "was: default, half of its disk" in ran.err
    assert f"now: you set it at {spec}:1" in ran.err
    assert settings(cluster, "quota-backend-bytes") == ["600000000"] * 3
    assert lost(log, as_found(cluster.client().read(log.prefix))) == ()
    events = [(each.machine, each.text) for each in record(cluster).events if each.machine]
    hosts = [machine for machine, text in events if text.startswith("takes revision 2: restarts etcd main")]
    assert sorted(hosts) == sorted(each["name"] for each in cluster.hosts())
    for number, host in enumerate(hosts):
        assert events[2 * number][0] == events[2 * number + 1][0] == host, "a turn ends before the next one begins"
    until(lambda: set(present(cluster).values()) == {2}, "every report names revision 2")


def test_the_same_spec_again_changes_nothing(cluster: RealCluster) -> None:
    before = record(cluster)

    ran = up(cluster, spec_of(cluster, {"quotaBackendBytes": 600_000_000}))

    assert ran.code == 0, ran.err
    assert record(cluster) == before
    assert "would change" not in ran.err


def test_a_dry_run_shows_the_plan_and_writes_nothing(cluster: RealCluster) -> None:
    spec = spec_of(cluster, {"quotaBackendBytes": 610_000_000})
    before = all_files(cluster.paths.store)

    text = up(cluster, spec, "--dry-run")
    data = up(cluster, spec, "--dry-run", "-o", "json")

    assert text.code == data.code == 0, text.err + data.err
    assert "restarts on master-a, master-b, master-c, one master after the other:\n  etcd main" in text.out
    assert json.loads(data.out)["restarts"] == ["etcd main"]
    assert all_files(cluster.paths.store) == before


def test_what_a_living_cluster_cannot_change_is_refused_all_at_once_before_anything_is_written(
    cluster: RealCluster,
) -> None:
    members = [{"name": short, "instanceGroup": f"master-{group}"} for short, group in zip("xbc", "abc", strict=True)]
    spec = spec_of(cluster, {"members": members, "clientPort": 4011}, dnsZone="example.org")
    before = all_files(cluster.paths.store)

    ran = up(cluster, spec)

    assert ran.code == 2
    assert "etcdClusters.main.members.x: cannot be added" in ran.err
    assert "etcdClusters.main.clientPort: cannot change" in ran.err
    assert "dnsZone: cannot change" in ran.err
    assert ran.err.count("hint:") >= 3
    assert all_files(cluster.paths.store).keys() == before.keys()
    assert record(cluster).state is State.DONE


def test_a_setting_that_etcd_rejects_stops_at_one_master_which_goes_back_by_itself(cluster: RealCluster) -> None:
    before, wanted = present(cluster), record(cluster).wanted

    with cluster.writing() as writer:
        ran = up(cluster, spec_of(cluster, {"quotaBackendBytes": 600_000_000, "logLevel": "deafening"}))
        log = writer.stop()

    assert ran.code == 4, ran.err
    assert "stopped at master-" in ran.err
    assert "deafening" in ran.err, "etcd's own words"
    assert lost(log, as_found(cluster.client().read(log.prefix))) == ()
    stopped = record(cluster)
    assert (stopped.state, stopped.turn, stopped.before) == (State.STOPPED, None, wanted)
    assert sum(each.text.startswith(f"takes revision {stopped.wanted}") for each in stopped.events) == 1
    until(lambda: present(cluster) == before, "all masters report the former revision")
    until(lambda: cluster.healthy() == {"main/a", "main/b", "main/c"}, "all members are healthy")
    status = cluster.run("status", "--cluster", cluster.name)
    assert status.code == 4
    assert f"revision {stopped.wanted}: stopped" in status.out


def test_undo_returns_to_an_earlier_revision_under_a_new_number(cluster: RealCluster) -> None:
    ran = cluster.run("rollout", "undo", "--to", "1", "--cluster", cluster.name, seconds=300)

    assert ran.code == 0, ran.err
    assert settings(cluster, "quota-backend-bytes") == ["536870912"] * 3
    number = record(cluster).wanted
    assert record(cluster).state is State.DONE
    history = cluster.run("rollout", "history", "--cluster", cluster.name)
    assert f"{number} *" in history.out
    assert "as revision 1" in history.out
    assert cluster.run("status", "--cluster", cluster.name, "--wait").code == 0


def test_killed_command_agent_and_host_delay_a_rollout_and_asking_again_ends_it(cluster: RealCluster) -> None:
    spec = spec_of(cluster, {"quotaBackendBytes": 620_000_000})
    command = [*COMMAND, "up", str(spec), "--timeout", f"{SECONDS:g}"]
    env = environment(PROTOKUBE_STATE=str(cluster.state))
    with cluster.writing() as writer, subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL) as typed:
        turn = until(lambda: record(cluster).turn, "the first master takes its turn", every=0.02)
        typed.send_signal(signal.SIGKILL)
        os.kill(cluster.agent_of(turn.name), signal.SIGKILL)
        second = until(lambda: turn_after(cluster, turn), "the next one takes its turn", every=0.02)
        cluster.admin.call("kill_host", host=second.name)
        typed.wait()
        ran = up(cluster, spec)
        log = writer.stop()

    assert ran.code == 0, ran.err
    assert lost(log, as_found(cluster.client().read(log.prefix))) == ()
    assert record(cluster).state is State.DONE
    until(lambda: settings(cluster, "quota-backend-bytes") == ["620000000"] * 3, "every master has it")
    assert second.name not in {each["name"] for each in cluster.hosts()}
    until(lambda: cluster.healthy() == {"main/a", "main/b", "main/c"}, "all members are healthy")


def test_a_host_that_is_replaced_later_starts_with_the_wanted_revision(cluster: RealCluster) -> None:
    name, wanted = cluster.hosts()[0]["name"], record(cluster).wanted
    cluster.admin.call("kill_host", host=name)

    until(lambda: len(present(cluster)) == 3 and name not in present(cluster), "another host reports")
    until(lambda: set(present(cluster).values()) == {wanted}, "it runs the wanted revision")


def test_the_only_master_restarts_its_etcd_only_if_that_is_accepted() -> None:
    with RealCluster() as single:
        spec = single.write_spec(masters=1)
        single.up(str(spec))
        changed = single.write_spec(masters=1, etcdClusters=[{"name": "main", "quotaBackendBytes": 600_000_000}])
        before = all_files(single.paths.store).keys()

        refused = up(single, changed)
        accepted = up(single, changed, "--yes")
        changed.unlink()

        assert refused.code == 4
        assert "has one master" in refused.err
        assert "--yes" in refused.err
        assert {each for each in all_files(single.paths.store) if "revisions" in each} - before == {
            f"{single.name}/revisions/000002.json"
        }
        assert accepted.code == 0, accepted.err
        assert settings(single, "quota-backend-bytes") == ["600000000"]


def test_a_cluster_is_not_renamed_by_its_spec_and_no_second_one_appears(cluster: RealCluster) -> None:
    spec = spec_of(cluster)
    assert up(cluster, spec).code == 0
    spec.write_text(spec.read_text().replace(cluster.name, f"{cluster.name}-2"))

    ran = up(cluster, spec)

    assert ran.code == 4
    assert f"brought up {cluster.name}, which still exists" in ran.err
    assert [each.name for each in cluster.state.iterdir() if each.is_dir()] == [cluster.name]
