"""`protokube stop` and `start`: nothing runs in between, and nothing is lost. A reboot is the same, but unannounced."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from clusters.machine_census import NAMED, Census, devices_under
from clusters.real import RealCluster, until
from protokube.local.disk import loops


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealCluster]:
    """Of three members: they agree again after every stop."""
    with RealCluster() as cluster:
        cluster.up()
        cluster.client().put("kept", "value")
        yield cluster


def what_is_kept(cluster: RealCluster) -> dict[str, Any]:
    """Everything that must be the same before and after."""
    told = cluster.until_ready()
    store = {str(each): each.read_bytes() for each in cluster.paths.store.glob("*/pki/**/*") if each.is_file()}
    return {
        "members": [(each["member"], each["id"], each["clusterId"], each["volume"]) for each in told["members"]],
        "keys": store,
        "files": (cluster.paths.client / "env").read_text(),
        "values": [each.value for each in cluster.client().read("kept")],
    }


def command(cluster: RealCluster, *words: str) -> str:
    said = cluster.run(*words, "--cluster", cluster.name)
    assert said.code == 0, said.err
    return said.out


def state_of(cluster: RealCluster) -> str:
    return cluster.run("list").out.splitlines()[1].split()[1]


def nothing_runs(cluster: RealCluster, census: Census) -> None:
    """All but the folder is gone."""
    until(lambda: [each for each in census.left() if not each.startswith("folder ")] == [], "nothing of it runs", 20)
    assert cluster.paths.root.is_dir()


def reboot(cluster: RealCluster) -> None:
    """What is left of a cluster when the machine went off: files. Nobody gets to tidy up."""
    for pid, _ in Census.of(cluster.paths).processes:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not Census.of(cluster.paths).processes, "all of it was killed")
    for loop in loops.bound_under(cluster.paths.disks):
        loops.release(loop)
    until(lambda: not devices_under(cluster.paths.root), "no disk is bound")
    if (NAMED / cluster.paths.switch).exists():
        subprocess.run(["ip", "netns", "delete", cluster.paths.switch], check=True)


def test_a_cluster_that_was_stopped_has_nothing_running_and_starts_as_it_was(cluster: RealCluster) -> None:
    before, census = what_is_kept(cluster), Census.of(cluster.paths)

    said = command(cluster, "stop")

    nothing_runs(cluster, census)
    assert "protokube start" in said
    logs = [*cluster.paths.hosts.glob("*/var/log/pods/*/etcd-container.log")]
    assert logs
    assert all("closed etcd server" in each.read_text() for each in logs), "etcd ended in order"
    assert state_of(cluster) == "stopped"
    told = cluster.run("status", "--cluster", cluster.name)
    assert told.code == 4
    assert told.out.startswith(f"{cluster.name}: stopped ")
    assert "was stopped already" in command(cluster, "stop")

    command(cluster, "start")

    assert what_is_kept(cluster) == before
    assert state_of(cluster) == "running"


def test_a_start_of_what_runs_changes_nothing(cluster: RealCluster) -> None:
    before, hosts = what_is_kept(cluster), cluster.hosts()

    command(cluster, "start")

    assert what_is_kept(cluster) == before
    assert cluster.hosts() == hosts


def test_after_a_reboot_one_command_brings_it_back(cluster: RealCluster) -> None:
    before = what_is_kept(cluster)

    reboot(cluster)
    assert f"{cluster.name}  not running: `protokube start" in cluster.run("list").out
    command(cluster, "start")

    assert what_is_kept(cluster) == before


def test_a_stop_that_was_killed_halfway_is_gone_on_with_or_undone(cluster: RealCluster) -> None:
    before, census = what_is_kept(cluster), Census.of(cluster.paths)
    daemon = cluster.status()["daemon"]["pid"]

    os.kill(daemon, signal.SIGTERM)  # as far as `stop` came
    until(lambda: not cluster.paths.admin_socket.exists(), "the daemon ends")
    cluster.paths.stopped.touch()
    os.kill(cluster_host(census), signal.SIGKILL)
    command(cluster, "start")
    assert what_is_kept(cluster) == before

    again = Census.of(cluster.paths)
    os.kill(cluster.status()["daemon"]["pid"], signal.SIGKILL)
    command(cluster, "stop")
    nothing_runs(cluster, again)


def cluster_host(census: Census) -> int:
    """The first process of a host."""
    return min(pid for pid, _ in census.processes if is_init(pid))


def is_init(pid: int) -> bool:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    return next(each for each in lines if each.startswith("NSpid:")).split()[2:] == ["1"]


def test_up_starts_a_stopped_cluster_too_and_down_removes_one(cluster: RealCluster) -> None:
    assert state_of(cluster) == "stopped", "by the test before"

    cluster.up()
    assert [each.value for each in cluster.client().read("kept")] == ["value"]

    command(cluster, "stop")
    census = Census.of(cluster.paths)
    command(cluster, "down")
    census.nothing_is_left()
