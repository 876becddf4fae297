"""Two wiped disks of three never form a second cluster beside the survivor, whenever that comes back.

Real etcd does it every time when it is left alone: the last test here shows that, and that ours would see it. Ours
are played on real clusters: formed, with keys, powered off, two disks destroyed, powered on; the survivor's host comes
back at once, 5 s later, or a minute later. Afterwards the lost disks are put back, and all is as before.

`PROTOKUBE_WIPED_TIMES` says how often each is played, `PROTOKUBE_WIPED_AT_ONCE` in how many clusters at a time.
"""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from clusters.etcd import make_cluster
from clusters.real import RealCluster, until
from clusters.watch import Onlooker, write_keys

TIMES = int(os.environ.get("PROTOKUBE_WIPED_TIMES", "1"))
AT_ONCE = int(os.environ.get("PROTOKUBE_WIPED_AT_ONCE", "3"))
"""Clusters in which scenarios are played at the same time."""
WATCHED = 4.0
"""Seconds for which everybody is watched after all have said what they have to say; a second cluster needs one."""

BLANK, EMPTIED = WAYS = ("replaced by blank ones", "emptied, identity kept")
DELAYS = (0.0, 5.0, 60.0)


@dataclass(frozen=True)
class Scenario:
    way: str
    late: float
    time: int

    @property
    def survivor(self) -> str:
        return "abc"[(self.time + WAYS.index(self.way) + DELAYS.index(self.late)) % 3]

    def __str__(self) -> str:
        return f"{self.way}, survivor {self.late:g} s late, {self.time}"


SCENARIOS = [
    Scenario(way, late, number) for late in reversed(DELAYS) for way in WAYS for number in range(TIMES)
]  # the longest first


@dataclass
class Played:
    """What was seen in one scenario."""

    wrong: list[str] = field(default_factory=list)
    answered_by: set[str] = field(default_factory=set)
    asked: int = 0
    person: dict[str, str] = field(default_factory=dict)
    """By member: what its agent wants a person for, with what to do."""
    marks: set[str] = field(default_factory=set)
    untouched: bool = False
    """The disks are exactly as they were destroyed."""
    broken: list[str] = field(default_factory=list)
    keys_afterwards: bool = False


@pytest.fixture(scope="module")
def played() -> dict[Scenario, Played]:
    """Every scenario, in a few clusters at the same time; the ones that nobody came to are not in it."""
    waiting, results = deque(SCENARIOS), dict[Scenario, Played]()

    def work(_: int) -> None:
        with RealCluster() as cluster:
            cluster.up()
            while waiting:
                scenario = waiting.popleft()
                results[scenario] = Played()
                play(cluster, scenario, results[scenario])

    with ThreadPoolExecutor(AT_ONCE) as pool:
        errors = [each.exception() for each in [pool.submit(work, number) for number in range(AT_ONCE)]]
    for error in filter(None, errors):
        raise error
    return results


def play(cluster: RealCluster, scenario: Scenario, seen: Played) -> None:
    wiped = [member for member in "abc" if member != scenario.survivor]
    cluster.until_ready()
    keys = write_keys(cluster.client())
    cluster_id = cluster.client().status(f"etcd-{scenario.survivor}").cluster_id
    held = [f"master-{scenario.survivor}"] if scenario.late else []
    cluster.power_off(held=held)
    kept = {member: Disk.keep(cluster, member) for member in wiped}
    for disk in kept.values():
        disk.destroy(cluster, scenario.way)

    with Onlooker(cluster.endpoints, cluster.tls, keys, cluster_id) as onlooker:
        cluster.power_on()
        if scenario.late:
            time.sleep(scenario.late)
            cluster.set_group(held[0], 1)
        until(lambda: {f"main/{member}" for member in wiped} <= wanted_persons(cluster).keys(), "a person is wanted")
        until(lambda: asks_for_votes(cluster, scenario.survivor), "the survivor asks the others for their votes")
        time.sleep(WATCHED)
        until(lambda: min(onlooker.asked.values()) > 10, "every member was asked often enough")

    seen.wrong, seen.answered_by, seen.asked = onlooker.wrong, set(onlooker.answered), min(onlooker.asked.values())
    seen.person = wanted_persons(cluster)
    seen.broken = [note["text"] for note in cluster.notes("broken")]
    seen.marks = {volume["mark"] for volume in cluster.admin.call("volumes")}
    cluster.power_off()
    seen.untouched = all(disk.is_as_destroyed(cluster, scenario.way) for disk in kept.values())
    for disk in kept.values():
        disk.put_back()
    cluster.power_on()
    cluster.until_ready()
    found = {each.key: each.value for each in cluster.client().read("/before/")}
    seen.keys_afterwards = found == keys


def asks_for_votes(cluster: RealCluster, member: str) -> bool:
    """Its etcd runs on its data; without a quorum since its start, it does not answer anybody but its peers yet."""
    log = cluster.paths.host(cluster.host_of(member)) / "var/log/pods/kube-system_etcd-server/etcd-container.log"
    return log.exists() and "pre-candidate" in log.read_text(errors="replace")


def wanted_persons(cluster: RealCluster) -> dict[str, str]:
    return {note["about"]: f"{note['text']}; {note['hint']}" for note in cluster.notes("needsAPerson")}


@dataclass(frozen=True)
class Disk:
    """The disk of one member, while its host is off, and a copy of it."""

    volume: str
    image: Path
    copy: Path

    @staticmethod
    def keep(cluster: RealCluster, member: str) -> Disk:
        told = cluster.volume(member)
        image = Path(told["image"])
        copy = image.with_suffix(".kept")
        subprocess.run(["cp", "--sparse=always", "--reflink=auto", image, copy], check=True)
        return Disk(told["id"], image, copy)

    def destroy(self, cluster: RealCluster, way: str) -> None:
        if way == BLANK:
            size = self.image.stat().st_size
            os.truncate(self.image, 0)
            os.truncate(self.image, size)
        else:
            cluster.on_disk(self.volume, "rm -r var/etcd/data/*; test -s protokube.json")

    def is_as_destroyed(self, cluster: RealCluster, way: str) -> bool:
        """Not a byte on a blank one; nothing where data was on the other."""
        if way == BLANK:
            with self.image.open("rb") as file:
                return is_blank(file.fileno())
        return cluster.on_disk(self.volume, "find var/etcd/data -type f").strip() == ""

    def put_back(self) -> None:
        self.copy.rename(self.image)


def is_blank(file: int) -> bool:
    try:
        os.lseek(file, 0, os.SEEK_DATA)
    except OSError as error:
        return error.errno == errno.ENXIO
    return False


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
class TestTwoWipedDisks:
    def test_never_form_a_second_cluster(self, played: dict[Scenario, Played], scenario: Scenario) -> None:
        seen = played[scenario]

        assert seen.wrong == []
        assert seen.answered_by == set(), "no member is served before it has seen a quorum"
        assert seen.asked > 10

    def test_are_told_to_a_person_with_what_to_do(self, played: dict[Scenario, Played], scenario: Scenario) -> None:
        wiped = [member for member in "abc" if member != scenario.survivor]
        seen = played[scenario]

        assert seen.broken == []
        for member in wiped:
            said = seen.person[f"main/{member}"]
            if scenario.way == BLANK:
                assert "turns up blank" in said
                assert "was lost outside of us" in said
            else:
                assert f"the data of main/{member} is gone, and the other members have no quorum" in said
                assert "rebuilds the cluster" in said

    def test_are_left_exactly_as_they_are(self, played: dict[Scenario, Played], scenario: Scenario) -> None:
        assert played[scenario].marks == {"formed"}
        assert played[scenario].untouched

    def test_put_back_make_the_cluster_whole_again(self, played: dict[Scenario, Played], scenario: Scenario) -> None:
        assert played[scenario].keys_afterwards


def test_etcd_left_alone_does_form_a_second_cluster_and_our_onlooker_sees_it(tmp_path: Path) -> None:
    """The same choreography with plain etcd processes, the fixed set and `new`; the survivor comes 5 s late."""
    cluster = make_cluster(tmp_path, "3.4")
    try:
        cluster.start()
        cluster.wait()
        keys = write_keys(cluster.client())
        cluster_id = cluster.client().status("c").cluster_id
        for member in cluster.members.values():
            member.stop()
        for name in "ab":
            cluster.members[name].wipe()

        with Onlooker(cluster.endpoints, cluster.tls, keys, cluster_id) as onlooker:
            cluster.start("a", "b")
            time.sleep(5)
            until(lambda: onlooker.accepted, "the two wiped ones serve")
            cluster.start("c")
            # what becomes of the survivor differs from time to time: it joins in, hangs, or dies of the other log
            until(lambda: onlooker.missing and onlooker.accepted, "the second cluster is seen")

        assert onlooker.strange_ids == [], "the same id: nothing but the keys tells the two apart"
        assert "behind a quorum, lacks 20 keys" in onlooker.missing[0]
        assert any("took a write" in each for each in onlooker.accepted)
    finally:
        cluster.close()
