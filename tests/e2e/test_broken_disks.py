"""Disks that hang, or break again and again: what takes minutes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from clusters.broken_disks import MINUTES, forget_faults, heals, notes, remount, seen_from_outside
from clusters.real import RealCluster, until


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealCluster]:
    with RealCluster() as made:
        yield made.up()


def test_a_disk_that_hangs_is_named_and_its_member_comes_back_with_it(cluster: RealCluster) -> None:
    forget_faults(cluster)
    point = seen_from_outside(cluster, "b")
    subprocess.run(["fsfreeze", "--freeze", point], check=True)
    try:
        until(
            lambda: any("hangs when it is written" in each for each in notes(cluster, "waiting")),
            "an agent says that the disk hangs",
            MINUTES,
        )
        cluster.client().put("/kept", "without b")
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", point], check=True)

    until(lambda: len(cluster.healthy()) == 3, "all members are healthy", MINUTES)
    until(lambda: cluster.status()["ready"], "the cluster is ready", MINUTES)
    assert [each.value for each in cluster.client("etcd-b").read("/kept")] == ["without b"]


def test_a_disk_that_breaks_again_and_again_is_refused_until_a_person_accepts_it(cluster: RealCluster) -> None:
    forget_faults(cluster)
    volume = cluster.volume("b")["id"]
    for _ in range(2):
        epoch = cluster.volume("b")["epoch"]
        remount(cluster, "b", "abort")
        heals(cluster, "b", epoch)

    remount(cluster, "b", "abort")

    until(
        lambda: any("broke 3 times within an hour" in each for each in notes(cluster, "needsAPerson")),
        "it is refused",
        MINUTES,
    )
    seen = cluster.run("status", "--cluster", cluster.name)
    assert seen.code == 4
    assert f"protokube etcd accept {volume} --repaired" in seen.out
    phase = next(each["phase"] for each in cluster.status()["disks"] if each["id"] == volume)
    assert phase == "broken"
    accepted = cluster.run("etcd", "accept", volume, "--repaired", "--yes", "--cluster", cluster.name)
    assert accepted.code == 0, accepted.err
    until(lambda: len(cluster.healthy()) == 3, "all members are healthy", MINUTES)
    until(lambda: cluster.status()["ready"], "the cluster is ready", MINUTES)
