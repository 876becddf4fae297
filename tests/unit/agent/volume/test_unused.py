"""Volumes with a member's tags that are not its home: found out from the record, and given away unharmed."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from builders.agent import a_generation, a_round, a_volume, an_identity
from protokube.agent import links
from protokube.agent.round import Round
from protokube.agent.volume import unused, verified
from protokube.errors import TryLater
from protokube.host import Done as JobDone
from protokube.host import Failed, Job, Mount, Unmount
from protokube.members.generation import encode
from protokube.providers.volumes import Lock, Volume
from protokube.store import layout
from protokube.store.memory import MemoryStore

STORES = count(1)
FORMED: dict[str, Any] = {"mark": "formed", "epoch": 2}
OLD = a_volume("vol-old", attached_to="i-1", **FORMED)


class Disks:
    def __init__(self, *mounts: Mount) -> None:
        self.table = list(mounts)
        self.answer: JobDone | Failed | None = JobDone()
        self.jobs: list[Job] = []

    def mounts(self) -> list[Mount]:
        return self.table

    def run(self, job: Job) -> JobDone | Failed | None:
        self.jobs.append(job)
        if isinstance(self.answer, JobDone):
            self.table = [each for each in self.table if each.number != getattr(job, "number", None)]
        return self.answer


class Cloud:
    lock = Lock.ATTACHMENT

    def __init__(self) -> None:
        self.released: list[str] = []

    def release(self, volume: str) -> None:
        self.released.append(volume)


def looking_at(root: Path, *listed: Volume, superseded: tuple[str, ...] = ()) -> Round:
    store = MemoryStore(f"unused-{next(STORES)}")
    record = a_generation(is_open=False)
    for each in superseded:
        record = record.with_superseded(each, "a")
    store.create(layout.etcd_generation("laptop", "main"), encode(record))
    round_ = a_round(root, store=store, volumes=Cloud(), disks=Disks())
    round_.volumes = listed
    return round_


def mount_of(round_: Round, volume: str) -> Mount:
    point = round_.edges.inside(f"/mnt/master-{volume}")
    return Mount(number=(7, 3), point=point, type="ext4", options=frozenset(), id=9)


def test_a_volume_that_the_record_calls_superseded_is_unused(tmp_path: Path) -> None:
    round_ = looking_at(tmp_path, OLD, a_volume("vol-new", **FORMED), superseded=("vol-old", "vol-gone"))

    assert unused.volumes(round_) == {"vol-old": "superseded by another disk of its member"}
    assert unused.superseded(round_) == {"vol-old"}


def test_a_blank_replacement_is_unused_while_the_former_volume_is_there(tmp_path: Path) -> None:
    round_ = looking_at(tmp_path, a_volume("vol-a", **FORMED), a_volume("vol-new"), a_volume("vol-b", member="b"))

    assert unused.volumes(round_) == {"vol-new": "a blank replacement; vol-a is the disk of its member"}


def test_a_blank_replacement_of_a_superseded_volume_is_used(tmp_path: Path) -> None:
    round_ = looking_at(tmp_path, OLD, a_volume("vol-new"), superseded=("vol-old",))
    assert list(unused.volumes(round_)) == ["vol-old"]


@pytest.mark.parametrize("changes", [{"mark": "forming"}, {"mark": "formed"}, {"epoch": 1}])
def test_a_volume_that_was_ever_used_is_no_blank_replacement(tmp_path: Path, changes: dict[str, Any]) -> None:
    round_ = looking_at(tmp_path, a_volume("vol-a", **FORMED), replace(a_volume("vol-new"), **changes))
    assert unused.volumes(round_) == {}


def test_members_of_two_etcd_clusters_are_not_mixed_up(tmp_path: Path) -> None:
    round_ = looking_at(tmp_path, a_volume("vol-a", **FORMED), a_volume("vol-e", etcd_cluster="events"))
    assert unused.volumes(round_) == {}


def test_a_store_that_is_silent_makes_nothing_unused(tmp_path: Path) -> None:
    round_ = looking_at(tmp_path, OLD)
    round_.unread["main"] = TryLater("away")
    assert unused.superseded(round_) == set()


# Giving one away.


def test_a_volume_is_unmounted_and_then_detached(tmp_path: Path) -> None:
    round_ = looking_at(tmp_path, OLD)
    mount = mount_of(round_, "vol-old")
    disks, cloud = Disks(mount), Cloud()
    round_.edges.disks, round_.edges.volumes = disks, cloud  # type: ignore[assignment]
    verified.note(round_.edges, "vol-old", mount)

    unused.give_away(round_, OLD, "superseded")

    assert disks.jobs == [Unmount(point=mount.point, number=(7, 3))]
    assert cloud.released == ["vol-old"]
    assert not verified.is_verified(round_.edges, "vol-old", mount, an_identity(volume="vol-old"))


@pytest.mark.parametrize("answer", [None, Failed("target is busy")])
def test_it_is_not_detached_before_it_is_unmounted(tmp_path: Path, answer: Failed | None) -> None:
    round_ = looking_at(tmp_path, OLD)
    disks, cloud = Disks(mount_of(round_, "vol-old")), Cloud()
    disks.answer = answer
    round_.edges.disks, round_.edges.volumes = disks, cloud  # type: ignore[assignment]

    with pytest.raises(TryLater, match="vol-old"):
        unused.give_away(round_, OLD, "superseded")

    assert cloud.released == []


def test_one_that_is_served_goes_on_and_a_person_reads_it(tmp_path: Path) -> None:
    round_ = looking_at(tmp_path, OLD)
    disks, cloud = Disks(mount_of(round_, "vol-old")), Cloud()
    round_.edges.disks, round_.edges.volumes = disks, cloud  # type: ignore[assignment]
    folder = round_.edges.inside(links.DIRECTORY)
    folder.mkdir(parents=True)
    (folder / "etcd.manifest").symlink_to("/mnt/master-vol-old/k8s.io/manifests/etcd.manifest")

    unused.give_away(round_, OLD, "superseded")

    assert disks.jobs == []
    assert cloud.released == []
    assert [each.text for each in round_.report.person] == ["vol-old is served, and should not be: superseded"]


def test_a_bolted_disk_is_unmounted_and_stays_where_it_is(tmp_path: Path) -> None:
    round_ = looking_at(tmp_path, OLD)
    disks, cloud = Disks(mount_of(round_, "vol-old")), Cloud()
    cloud.lock = Lock.PIN
    round_.edges.disks, round_.edges.volumes = disks, cloud  # type: ignore[assignment]

    unused.give_away(round_, OLD, "superseded")

    assert len(disks.jobs) == 1
    assert cloud.released == []
    assert [each.text for each in round_.report.warnings] == ["vol-old is not used: superseded"]
