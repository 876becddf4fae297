"""Members that hold different data are told to a person, though every one of them is healthy; healthy ones never are.

The split brain is planted with etcd's own tool: one member is restored from a snapshot with the set, the token and the
name that it had. Ids come out the same, the log of the others fits, and all three report healthy, with different keys.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest

from clusters.real import RealCluster, until
from protokube.errors import ProtokubeError
from protokube.etcd.compare import compare
from protokube.members.agreement import Agree, Disagree, NotComparable, Suspicion
from protokube.members.generation import decode

COMPARISONS = int(os.environ.get("PROTOKUBE_COMPARISONS", "100"))
ALARM_SECONDS = 120.0
"""Agents compare every half minute, and more often once members differ; an alarm takes three times running."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealCluster]:
    with RealCluster() as made:
        yield made.up()


class Load:
    """Writers through every member, and compactions meanwhile, as API servers have them: not in every comparison."""

    def __init__(self, cluster: RealCluster) -> None:
        self.compacted = self.compared = 0
        self._writers = [cluster.writing(name, every=0.05) for name in cluster.endpoints]
        self._etcd = cluster.client()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._compact)

    def _compact(self) -> None:
        while not self._over.wait(0.2):
            if self.compared < 3 * self.compacted:  # a slow machine; each comparison would run into a compaction
                continue
            with suppress(ProtokubeError):  # no answer in time, on a busy machine
                wanted = {"revision": str(self._etcd.put("/load/now", "here"))}
                self._etcd._anywhere("cannot compact", partial(_compaction, wanted))
                self.compacted += 1

    def __enter__(self) -> Self:
        self.writers = [each.__enter__() for each in self._writers]
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        for each in self._writers:
            each.__exit__(None, None, None)

    @property
    def written(self) -> int:
        return sum(len(each.log().acknowledged) for each in self.writers)


def _compaction(wanted: dict[str, str], ask: Callable[..., Any]) -> None:
    ask("/v3/kv/compaction", wanted)


def test_healthy_members_under_load_never_raise_an_alarm(cluster: RealCluster) -> None:
    etcd, names = cluster.client(), list(cluster.endpoints)
    suspicion, seen = Suspicion(), Counter[type]()

    with Load(cluster) as load:
        for _ in range(COMPARISONS):
            result = compare(etcd, names)
            load.compared += 1
            suspicion = suspicion.feed(result)
            seen[type(result)] += 1
            assert not isinstance(result, Disagree), str(result)
        written, compacted = load.written, load.compacted

    assert suspicion.alarm is None
    assert written > COMPARISONS / 3
    assert compacted > 3
    assert seen[Agree] > seen[NotComparable], "most comparisons come to a result, also under load"
    assert alarms(cluster) == []


def alarms(cluster: RealCluster) -> list[dict[str, str]]:
    return [note for note in cluster.notes("needsAPerson") if note["step"] == "agreement"]


def settings(cluster: RealCluster, member: str) -> dict[str, Any]:
    """What etcd of this member is told when a cluster is founded."""
    told = json.loads(cluster.template(f"master-{member}")["files"]["/etc/protokube/agent.json"])
    (found,) = (each for each in told["master"]["etcd"][0]["members"] if each["short"] == member)
    (record,) = (path for path in cluster.paths.store.rglob("*generation*") if path.is_file())
    generation = decode(record.read_bytes())
    assert generation is not None
    return {**found["settings"], "initial-cluster-token": generation.token}


def plant(cluster: RealCluster, member: str, folder: Path) -> None:
    """Give one member the keys of before a second time, and then the log of the others on top of them.

    The others must have started once only. etcd 3.6 takes a snapshot at its second start, and a third one keeps no log
    from before it: as the leader it would send that snapshot, and the planted member would be right again.
    """
    snapshot = folder / "snapshot.db"
    saved = cluster.etcdctl("snapshot", "save", str(snapshot), ETCDCTL_ENDPOINTS=cluster.endpoints[f"etcd-{member}"])
    assert saved.returncode == 0, saved.stderr
    told = settings(cluster, member)
    flags = " ".join(
        f"--{name}={told[name]}"
        for name in ("name", "initial-cluster", "initial-cluster-token", "initial-advertise-peer-urls")
    )
    cluster.power_off()
    for other in {"a", "b", "c"} - {member}:
        snapshots = cluster.on_disk(cluster.volume(other)["id"], "find var/etcd/data/member/snap -name '*.snap'")
        assert not snapshots, f"{other} has started before: {snapshots}"
    etcdctl = Path(cluster.told["etcdctl"])
    etcdutl = etcdctl.with_name("etcdutl")  # since 3.5 it restores, and since 3.6 it alone
    program = etcdutl if etcdutl.exists() else etcdctl
    restore = f"{program} snapshot restore {snapshot} {flags} --data-dir=var/etcd/data"
    cluster.on_disk(cluster.volume(member)["id"], f"rm -r var/etcd/data; {restore}")
    for mark in cluster.paths.store.rglob("raft/*"):  # with them the member would be known as an older copy of itself
        mark.unlink()
    cluster.power_on()


def test_a_split_brain_raises_the_alarm_in_the_agents_reports_though_all_are_healthy(
    cluster: RealCluster, tmp_path: Path
) -> None:
    until(lambda: len(cluster.healthy()) == 3, "all healthy")
    before = cluster.admin.call("volumes")

    plant(cluster, "c", tmp_path)
    until(lambda: len(cluster.healthy()) == 3, "all healthy, and one of them wrong")
    said = until(lambda: alarms(cluster), "an agent raises the alarm", ALARM_SECONDS)

    assert said[0]["about"] == "main"
    assert "its members do not hold the same data" in said[0]["text"]
    assert "etcd-a, etcd-b" in said[0]["text"]
    assert "protokube etcd members" in said[0]["hint"]
    until(lambda: len(cluster.healthy()) == 3, "all healthy still")
    told = cluster.status()
    assert not told["ready"]
    assert any("its members do not hold the same data" in each for each in told["lacks"])
    assert cluster.run("status", "--cluster", cluster.name).code == 4, "a person is needed"
    ids = {each["clusterId"] for each in told["members"] if each["healthy"]}
    assert len(ids) == 1, "nothing but the data tells them apart"
    assert [x["mark"] for x in cluster.admin.call("volumes")] == [x["mark"] for x in before], "no data is touched"


def test_the_master_on_the_wrong_side_leaves_the_names_of_the_api(cluster: RealCluster) -> None:
    """After the alarm of the test before: the majority stays in service."""
    until(lambda: alarms(cluster), "an agent raises the alarm", ALARM_SECONDS)
    addresses = {host["group"]: host["address"] for host in cluster.hosts()}
    right = sorted([addresses["master-a"], addresses["master-b"]])

    def published() -> list[str]:
        names = f"api.internal.{cluster.name}"
        return sorted(
            v for r in cluster.admin.call("records") if (r["name"], r["type"]) == (names, "A") for v in r["values"]
        )

    until(lambda: published() == right, f"the API is where the majority is: {right}")
