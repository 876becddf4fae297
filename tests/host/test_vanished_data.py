"""The data of a running member is deleted: its id stays until nothing on the machine uses the volume."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from clusters.real import RealCluster, until

MINUTES = 240.0


@pytest.fixture
def cluster() -> Iterator[RealCluster]:
    with RealCluster() as made:
        yield made.up()


def held_back(cluster: RealCluster) -> str:
    waits = [each["text"] for each in cluster.notes("waiting") if each["step"] == "etcd"]
    return next((each for each in waits if "its volume is still in use, so its etcd may run" in each), "")


def waits_anew(cluster: RealCluster, host: str) -> None:
    before = cluster.agents()[host]["at"]
    until(lambda: cluster.agents()[host]["at"] > before and held_back(cluster), "a new agent waits as well", MINUTES)


def test_a_member_is_removed_only_after_every_process_that_uses_its_volume_is_gone(cluster: RealCluster) -> None:
    etcd, host = cluster.client(), cluster.host_of("b")
    old = {each.id for each in etcd.members()}
    point = f"/mnt/master-{cluster.volume('b')['id']}"
    started = cluster.inside(host, "sh", "-c", f"sleep 3600 3>>{point}/held >/dev/null 2>&1 & echo $!")
    holder = started.stdout.strip()
    assert holder.isdigit(), started

    cluster.inside(host, "rm", "-rf", f"{point}/var/etcd/data/member")

    why = until(lambda: held_back(cluster), "the agent waits for whoever uses the volume", MINUTES)
    assert f"sleep (pid {holder}) has open {point}/held" in why or "etcd (pid" in why
    for _ in range(3):  # it has nothing to remember
        os.kill(cluster.agent_of(host), signal.SIGKILL)
        waits_anew(cluster, host)
    until(lambda: f"sleep (pid {holder})" in held_back(cluster) and "etcd (pid" not in held_back(cluster), "etcd ended")
    assert {each.id for each in etcd.members()} == old

    cluster.inside(host, "kill", holder)

    until(lambda: len({each.id for each in etcd.members()} - old) == 1, "the member joins anew", MINUTES)
    until(lambda: len(cluster.healthy()) == 3, "all members are healthy", MINUTES)
    until(lambda: not any(each.learner for each in etcd.members()), "every member is a voter", MINUTES)
    assert cluster.notes("broken") == []
