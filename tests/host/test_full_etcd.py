"""A whole local cluster whose etcd reaches its quota: what a user sees, and how it takes writes again.

Compaction by the agents needs a revision that is ten minutes old, so here, where no Kubernetes is the user, the test is
the user who compacts; everything after that is the agents'.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from clusters.real import RealCluster, until
from protokube.etcd import NoSpace
from protokube.etcd.client import GatewayEtcd

QUOTA = 16 * 2**20
SPARE = 400


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealCluster]:
    with RealCluster() as made:
        spec = made.write_spec(etcdClusters=[{"name": "main", "quotaBackendBytes": QUOTA}])
        try:
            made.up(str(spec))
        finally:
            spec.unlink()
        yield made


def fill(etcd: GatewayEtcd) -> None:
    for number in range(500):
        etcd.put(f"/full/{number % 5}", "x" * 200_000)


def person(cluster: RealCluster) -> dict[str, Any] | None:
    told = [note for note in cluster.status()["needsAPerson"] if note["step"] == "space"]
    return told[0] if told else None


def test_a_full_etcd_says_why_and_takes_writes_again_once_its_user_compacts(cluster: RealCluster) -> None:
    etcd = cluster.client()
    for number in range(20):
        etcd.put(f"/kept/{number}", str(number))
    for number in range(SPARE):
        etcd.put(f"/spare/{number}", "x")
    with pytest.raises(NoSpace):
        fill(etcd)

    note = until(lambda: person(cluster), "the agents report that a person is needed")
    assert "the agents may not compact it" in note["text"]
    assert "maintenance.compact: true" in note["hint"]
    assert "of a quota of 16.0 MiB" in note["saw"]
    assert "most of it: /full: 5 keys" in note["saw"]
    shown = cluster.run("etcd", "members", "--cluster", cluster.name).out
    assert shown.count("out of space") == 3
    assert "a database reached its quota, so etcd takes no writes" in shown
    explained = cluster.run("explain", "member", "main/a", "--cluster", cluster.name).out
    assert "a database reached its quota, so etcd takes no writes" in explained
    assert "next: a person acts: set maintenance.compact: true" in explained
    assert "out of space" in cluster.run("status", "--cluster", cluster.name).out

    etcd.compact(etcd.status("etcd-a").revision)
    spare = iter(range(SPARE))

    def cleared() -> bool:
        """Each member counts what the compaction gave up as in use until its next write; only deletes are taken."""
        cluster.etcdctl("del", f"/spare/{next(spare)}")
        return not etcd.alarms()

    until(cleared, "the agents clear the alarm", seconds=180, every=1.0)
    assert etcd.put("/after", "x") > 0
    assert {each.key: each.value for each in etcd.read("/kept/")} == {f"/kept/{n}": str(n) for n in range(20)}
    assert len(etcd.read("/full/")) == 5
    assert max(etcd.status(name).db_size for name in cluster.endpoints) < QUOTA // 2
    cluster.until_ready()
