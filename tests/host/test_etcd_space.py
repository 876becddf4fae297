"""Real etcd, three members, filled until it raises NOSPACE: the agents' real step and worker heal it, or say why not.

Everything is real but time: revisions become ten minutes old by a clock that the test moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from builders.agent import a_mounted_volume, a_round, a_store
from clusters.etcd import EtcdCluster, make_cluster
from clusters.scenario.edges import FakeClock, HostClock
from clusters.scenario.host import wanted_of
from protokube.agent.etcd import space
from protokube.agent.etcd.spacewatch import SpaceWatch
from protokube.agent.report import Report
from protokube.agent.round import MountedVolume, Round
from protokube.etcd import NoSpace
from protokube.etcd.client import GatewayEtcd
from protokube.launch.machine import MasterConfig
from protokube.members.space import is_sound
from protokube.store.memory import MemoryStore

QUOTA = 16 * 2**20
VALUE = "x" * 200_000
PATIENCE = 120


@dataclass
class Master:
    """One agent, as far as its step `space` goes."""

    home: MountedVolume
    round_: Round
    watch: SpaceWatch

    def round(self) -> Report:
        self.watch.tick()
        self.round_.report = Report()
        space.sync(self.round_)
        return self.round_.report


@dataclass
class Masters:
    cluster: EtcdCluster
    clock: FakeClock
    each: list[Master]

    def rounds(self, until: Callable[[list[Report]], object]) -> list[Report]:
        """Rounds of all masters, one after the other, until their reports say something."""
        deadline = time.monotonic() + PATIENCE
        log: list[str] = []
        while time.monotonic() < deadline:
            reports = [master.round() for master in self.each]
            log += [report.sentence() for report in reports if report.sentence() not in log[-9:]]
            if until(reports):
                return reports
            self.clock.advance(2)
            time.sleep(0.02)
        raise AssertionError("\n".join(log))

    def age(self) -> None:
        """Let what etcd holds now become old enough."""
        for master in self.each:
            master.round()
        self.clock.advance(40)
        for master in self.each:
            master.round()
        self.clock.advance(601)


def wanted_for(cluster: EtcdCluster) -> MasterConfig:
    told = wanted_of()
    etcd = told.etcd[0]
    members = tuple(
        replace(each, name=each.short, settings=each.settings | {"quota-backend-bytes": QUOTA}) for each in etcd.members
    )
    return replace(told, etcd=(replace(etcd, members=members, compact=True),))


def masters_of(cluster: EtcdCluster, root: Path, store: MemoryStore) -> Masters:
    clock, wanted, made = FakeClock(), wanted_for(cluster), []
    for name in cluster.members:
        watch = SpaceWatch({"main": cluster.client()}, HostClock(clock))
        round_ = a_round(root / name, wanted=wanted, clock=HostClock(clock), store=store, space=watch)
        home = a_mounted_volume(round_, f"vol-{name}", member=name)
        home.point.mkdir(parents=True)
        link = round_.edges.inside("/etc/kubernetes/manifests") / home.etcd.pod.file_name
        link.parent.mkdir(parents=True)
        link.symlink_to(f"/mnt/master-vol-{name}/k8s.io/manifests/etcd.manifest")
        round_.mounted.append(home)
        made.append(Master(home, round_, watch))
    return Masters(cluster, clock, made)


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Masters]]:
    clusters: list[EtcdCluster] = []

    def build(series: str) -> Masters:
        cluster = make_cluster(tmp_path, series, election=3000)
        clusters.append(cluster)
        for member in cluster.members.values():
            member.start(quota_backend_bytes=str(QUOTA))
        cluster.wait()
        return masters_of(cluster, tmp_path / "roots", a_store(request.node.name))

    yield build
    for cluster in clusters:
        cluster.close()


def fill(etcd: GatewayEtcd, key: Callable[[int], str]) -> None:
    """Write until etcd takes no more."""
    for number in range(500):
        try:
            etcd.put(key(number), VALUE)
        except NoSpace:
            return
    raise AssertionError("it never filled")


def healed(reports: list[Report]) -> bool:
    return any("takes writes again" in note.text for report in reports for note in report.did)


def person(reports: list[Report]) -> bool:
    return any(report.person for report in reports)


def test_an_etcd_full_of_old_revisions_takes_writes_again_and_nothing_current_is_lost(
    make: Callable[[str], Masters],
) -> None:
    masters = make("3.4")
    etcd = masters.cluster.client()
    for number in range(50):
        etcd.put(f"/kept/{number}", str(number))
    fill(etcd, lambda number: f"/registry/leases/{number % 5}")
    masters.age()
    leader = {name: etcd.status(name) for name in "abc"}
    before = next(name for name, status in leader.items() if status.leader == status.member_id)

    masters.rounds(healed)

    assert etcd.put("/after", "x") > 0
    assert etcd.alarms() == ()
    assert {each.key: each.value for each in etcd.read("/kept/")} == {f"/kept/{n}": str(n) for n in range(50)}
    assert {each.value for each in etcd.read("/registry/leases/")} == {VALUE}
    assert len(etcd.read("/registry/leases/")) == 5
    assert max(etcd.status(name).db_size for name in "abc") < QUOTA // 2
    now = etcd.status(before)
    assert now.leader != now.member_id, "leadership was moved away before the leader was defragmented"
    masters.rounds(lambda reports: all(report.sentence() == "" for report in reports))


def test_an_etcd_full_of_current_data_is_for_a_person_who_reads_which_prefix_fills_it(
    make: Callable[[str], Masters],
) -> None:
    masters = make("3.4")
    etcd = masters.cluster.client()
    etcd.put("/registry/pods/default/small", "x")
    fill(etcd, lambda number: f"/registry/secrets/default/{number}")
    masters.age()

    reports = masters.rounds(person)

    (note,) = [note for report in reports for note in report.person]
    assert "current data fills it, not old revisions" in note.text
    assert "of a quota of 16.0 MiB" in note.saw
    count = len(etcd.read("/registry/secrets/"))
    assert f"most of it: /registry/secrets: {count} keys, about " in note.saw
    assert "delete keys" in note.hint
    assert etcd.alarms() != ()
    assert count > 40, "nothing was deleted"


def settled_size(etcd: GatewayEtcd) -> int:
    """The size of the database, once nothing of the last writes is committed any more: that happens each 0.1 s."""
    sizes = [etcd.status("a").db_size]
    while len(sizes) < 5 or len(set(sizes[-5:])) > 1:
        time.sleep(0.1)
        sizes.append(etcd.status("a").db_size)
    return sizes[-1]


def test_an_etcd_that_may_lose_data_when_it_is_defragmented_is_left_to_a_person(make: Callable[[str], Masters]) -> None:
    masters = make("3.5")
    etcd = masters.cluster.client()
    fill(etcd, lambda number: f"/registry/leases/{number % 5}")
    version = etcd.status("a").version
    assert not is_sound(version), "take an older etcd for this test"
    masters.age()
    size = settled_size(etcd)

    reports = masters.rounds(person)

    (note,) = [note for report in reports for note in report.person]
    assert f"etcd {version} may lose data" in note.text
    assert etcd.status("a").db_size == size
