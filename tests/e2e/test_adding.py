"""Kubernetes with real kubelets is added to three masters that ran etcd alone, by a command that is killed twice."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest

from builders.command import COMMAND, environment
from clusters.kubelet import KubeletCluster
from clusters.real import until
from e2e.pods import one_on_each
from protokube.binaries.kubernetes import find
from protokube.launch import revisions
from protokube.launch.rollout import Rollout, State
from protokube.local.bringup import CACHE
from protokube.local.drill.writer import as_found, lost
from protokube.store.open import open_store

SECONDS = 300.0
BEFORE = {f"/before/{number}": f"value {number}" for number in range(100)}


@pytest.fixture(scope="module")
def cluster() -> Iterator[KubeletCluster]:
    with KubeletCluster() as made:
        made.up()
        yield made


def record(cluster: KubeletCluster) -> Rollout:
    found = revisions.read_rollout(open_store(f"file://{cluster.paths.store}"), cluster.name)
    assert found is not None
    return found


def killed_when(cluster: KubeletCluster, reached: Callable[[], object], what: str, *words: str) -> None:
    """`up` with these words, killed as soon as something is seen."""
    command = [*COMMAND, "up", "--cluster", cluster.name, *words]
    env = environment(PROTOKUBE_STATE=str(cluster.state))
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as typed:
        until(reached, what, SECONDS, every=0.05)
        typed.send_signal(signal.SIGKILL)


def test_kubernetes_and_kubelets_are_added_though_the_command_is_killed_twice_and_no_write_is_lost(
    cluster: KubeletCluster,
) -> None:
    kubernetes = find(None, CACHE)
    assert kubernetes is not None
    client = cluster.client()
    for key, value in BEFORE.items():
        client.put(key, value)
    before = {each["name"] for each in cluster.hosts()}

    with cluster.writing() as writer:
        words = ("--kubernetes", kubernetes.version, "--kubelet")
        killed_when(cluster, lambda: record(cluster).turn, "the first API server starts", *words)
        assert record(cluster).wanted == 2
        gone = killed_when_one_is_gone(cluster, before)
        ran = cluster.run("up", "--cluster", cluster.name, "--timeout", f"{SECONDS:g}", seconds=900)
        log = writer.stop()

    assert ran.code == 0, ran.err
    assert "3 nodes ready" in ran.err
    assert gone
    assert lost(log, as_found(cluster.client().read(log.prefix))) == ()
    assert as_found(cluster.client().read("/before/")) == BEFORE
    assert not before & {each["name"] for each in cluster.hosts()}
    assert record(cluster).state is State.DONE


def killed_when_one_is_gone(cluster: KubeletCluster, before: set[str]) -> set[str]:
    """By a plain `up`: that kubelets were asked for is known from the first one."""

    def gone() -> set[str]:
        return before - {each["name"] for each in cluster.hosts()}

    killed_when(cluster, gone, "the first host is replaced")
    return gone()


def test_then_pods_run_on_every_node_and_another_up_changes_nothing(cluster: KubeletCluster) -> None:
    kubernetes = find(None, CACHE)
    assert kubernetes is not None
    cluster.learn(kubernetes.version)
    before = record(cluster)

    assert len(one_on_each(cluster)) == 3
    again = cluster.run("up", "--cluster", cluster.name, "--timeout", f"{SECONDS:g}", seconds=900)
    none = cluster.run("up", "--cluster", cluster.name, "--kubernetes", "none")

    assert again.code == 0, again.err
    assert record(cluster) == before
    assert none.code == 4
    assert f"Kubernetes cannot be removed from {cluster.name}" in none.err
