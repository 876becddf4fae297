"""Operations of the cloud that need no device: creating volumes, writing tags and marks, and who may do it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.volumes import SIZE, a_volume
from clusters.local import PlainProcesses
from protokube.errors import InvalidRequest, Refused
from protokube.local.base.db import Database
from protokube.local.base.paths import Paths
from protokube.local.cloud.cloud import Cloud


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    paths = Paths.at(tmp_path / "dev")
    paths.create()
    database = Database(Path(":memory:"))
    machinery = PlainProcesses()
    yield Cloud(paths, database, machinery)
    machinery.close()
    database.close()


def a_host(cloud: Cloud) -> str:
    return cloud.registry.add("masters", zone="local").name


def test_a_volume_is_an_image_of_its_size_under_its_name(cloud: Cloud) -> None:
    (made,) = cloud.create_founders([a_volume()])

    image = cloud.paths.image(made.id)
    assert made.id.startswith("vol-")
    assert len(made.id) == len("vol-") + 8
    assert image.stat().st_size == SIZE
    assert image.stat().st_mode & 0o077 == 0


def test_a_volume_of_an_impossible_size_leaves_neither_a_row_nor_a_file(cloud: Cloud) -> None:
    with pytest.raises(InvalidRequest):
        cloud.create_founders([a_volume(size=1000)])

    assert cloud.list_volumes() == []
    assert list(cloud.paths.disks.iterdir()) == []


def test_a_founder_and_a_later_volume_of_the_same_request_are_two(cloud: Cloud) -> None:
    (founder,) = cloud.create_founders([a_volume()])

    later = cloud.create_volume(a_host(cloud), a_volume(), "main/a")

    assert later.id != founder.id
    assert (founder.request, later.request) == ("", "main/a")


def test_only_what_really_changed_is_told(cloud: Cloud) -> None:
    seen: list[int] = []
    cloud.on_change.append(lambda: seen.append(cloud.changes))
    host = a_host(cloud)
    (volume,) = cloud.create_founders([a_volume()])
    assert cloud.volumes.claim(volume.id, host)
    for _ in range(3):
        cloud.write_mark(host, volume.id, "forming")
        cloud.write_epoch(host, volume.id, 1, host, generation="g1")
        cloud.list_volumes()
        cloud.create_founders([a_volume()])

    assert seen == [1, 2, 3]


def test_a_death_is_told_before_the_volumes_are_free(cloud: Cloud) -> None:
    host = a_host(cloud)
    seen: list[bool] = []
    cloud.on_death.append(lambda: seen.append(cloud.registry.find(host).dead))

    cloud.declare_dead(host)
    cloud.declare_dead(host)

    assert seen == [True]


def test_a_machine_is_who_its_socket_says(cloud: Cloud) -> None:
    first, second = a_host(cloud), a_host(cloud)

    assert cloud.me(first).id == first
    assert [machine.id for machine in cloud.list_machines()] == sorted([first, second])
    with pytest.raises(Refused, match="no host"):
        cloud.me("nobody")


def test_what_does_not_run_cannot_be_killed_frozen_or_thawed(cloud: Cloud) -> None:
    host = a_host(cloud)

    for operation in (cloud.kill_host, cloud.freeze_host, cloud.thaw_host):
        with pytest.raises(Refused, match="does not run"):
            operation(host)
