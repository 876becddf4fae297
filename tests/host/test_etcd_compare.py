"""Real members are compared while others write: healthy ones never raise an alarm, two clusters in one always do."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Self

import pytest

from clusters.etcd import SERIES, EtcdCluster, eventually, make_cluster
from protokube.errors import ProtokubeError, TryLater
from protokube.etcd.client import GatewayEtcd
from protokube.etcd.compare import compare
from protokube.etcd.messages import to_wire
from protokube.members.agreement import Agree, Disagree, NotComparable, Suspicion

COMPARISONS = int(os.environ.get("PROTOKUBE_COMPARISONS", "100"))
"""Over both versions together; a soak asks for thousands."""


@pytest.fixture(params=SERIES)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EtcdCluster]:
    made = make_cluster(tmp_path, request.param, election=3000)
    try:
        made.start()
        made.wait()
        yield made
    finally:
        made.close()


def compact(etcd: GatewayEtcd, revision: int) -> None:
    with suppress(TryLater):  # another writer was faster
        etcd._anywhere("cannot compact", lambda ask: ask("/v3/kv/compaction", {"revision": str(revision)}))


def delete(etcd: GatewayEtcd, key: str) -> None:
    etcd._anywhere("cannot delete", lambda ask: ask("/v3/kv/deleterange", {"key": to_wire(key)}))


class Hammer:
    """Writes, deletes and compacts, as API servers do, through all members."""

    def __init__(self, cluster: EtcdCluster) -> None:
        self.written = self.compacted = 0
        self.failed = ""
        self._each = cycle([cluster.client(name) for name in cluster.members])
        self._random, self._over = Random(1), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            while not self._over.wait(0.002):
                with suppress(TryLater):  # a machine that stands still for seconds; the next write goes on
                    self._step()
        except ProtokubeError as why:
            self.failed = str(why)

    def _step(self) -> None:
        etcd, key = next(self._each), f"hammered/{self._random.randrange(200)}"
        if self._random.random() < 0.2:
            delete(etcd, key)
        else:
            revision = etcd.put(key, str(self._random.random()))
            if self._random.random() < 0.03:
                compact(etcd, revision - self._random.randrange(5))
                self.compacted += 1
        self.written += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def test_healthy_members_never_raise_an_alarm_while_others_write_and_compact(cluster: EtcdCluster) -> None:
    etcd, suspicion, seen = cluster.client(), Suspicion(), Counter[type]()
    etcd.put("one", "key")
    assert eventually(lambda: "" if compare(etcd, "abc") == Agree() else "not yet") == ""

    with Hammer(cluster) as hammer:
        end = time.monotonic() + 60
        while seen.total() < COMPARISONS // len(SERIES) or (idle(hammer) and time.monotonic() < end):
            result = compare(etcd, cluster.endpoints)
            suspicion = suspicion.feed(result)
            seen[type(result)] += 1
            assert not isinstance(result, Disagree), str(result)

    assert suspicion.alarm is None
    assert hammer.failed == ""
    assert hammer.compacted > 0
    assert hammer.written > COMPARISONS / 2
    assert seen[Agree] > seen[NotComparable], "most comparisons come to a result, also under load"
    cluster.members["b"].stop()
    assert compare(etcd, "abc") == NotComparable("b did not answer")


def idle(hammer: Hammer) -> bool:
    """What it did so far is no load: its disk is slower than we are."""
    return hammer.written <= COMPARISONS / 2 or hammer.compacted == 0


def in_the_first_term(cluster: EtcdCluster, *names: str) -> None:
    """Found it again until the first election has a winner: only equal terms make the logs of two clusters fit."""
    while cluster.client(*names).status(names[0]).raft_term != 2:
        for name in names:
            cluster.members[name].stop()
            cluster.members[name].wipe()
        cluster.start(*names)
        cluster.wait(*names)


def two_blank_members_and_a_late_survivor(cluster: EtcdCluster, *, compacted: bool) -> GatewayEtcd:
    """What must never happen, and does on real etcd: a and b lose their disks, found a cluster, and c comes back."""
    in_the_first_term(cluster, *"abc")
    etcd = cluster.client()
    last = [etcd.put(f"old/{number}", "data") for number in range(5)][-1]
    if compacted:
        compact(etcd, last - 1)
    for member in cluster.members.values():
        member.stop()
    for name in "ab":
        cluster.members[name].wipe()
    cluster.start("a", "b")
    cluster.wait("a", "b")
    in_the_first_term(cluster, "a", "b")
    newcomers = cluster.client("a", "b")
    for number in range(40):  # beyond the log of the survivor, which then joins in
        newcomers.put(f"new/{number}", "data")
    cluster.start("c")
    cluster.wait()
    return cluster.client()


@pytest.mark.parametrize(("cluster", "compacted"), [("3.4", False), ("3.5", True)], indirect=["cluster"])
def test_two_clusters_under_one_set_of_names_raise_the_alarm_though_all_are_healthy(
    cluster: EtcdCluster, compacted: bool
) -> None:
    """At rest and under load. With other compactions on both sides no hash can ever be compared."""
    etcd = two_blank_members_and_a_late_survivor(cluster, compacted=compacted)
    assert len({etcd.status(name).cluster_id for name in "abc"}) == 1, "nothing but the data tells them apart"
    assert len({etcd.listed_by(name) for name in "abc"}) == 1
    for load in (nullcontext(), Hammer(cluster)):
        with load:
            alarm = alarm_of(etcd)

        assert [side.names for side in alarm.sides] == [("a", "b"), ("c",)]
        assert alarm.out_of_service == ("c",)


def alarm_of(etcd: GatewayEtcd) -> Disagree:
    """Compare until there is one in which everybody was heard."""
    suspicion, results = Suspicion(), []
    for _ in range(20):
        results.append(compare(etcd, "abc"))
        suspicion = suspicion.feed(results[-1])
        if suspicion.alarm and not suspicion.alarm.silent:
            return suspicion.alarm
        time.sleep(0.1)
    raise AssertionError([str(each) for each in results])
