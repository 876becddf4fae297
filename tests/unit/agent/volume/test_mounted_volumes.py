"""What lies on a mounted volume, as far as files tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.agent import a_round, an_identity
from protokube.agent.volume import mounted_volumes
from protokube.agent.volume.mounted_volumes import data_of, is_empty, on_volume, point_of, read_identity
from protokube.errors import TryLater
from protokube.host import Mount
from protokube.members.identity import FILE, Unreadable, encode
from protokube.members.start_values import Data

DATA = "/var/etcd/data"


def with_log(point: Path, name: str = "0000000000000000-0000000000000000.wal") -> Path:
    folder = point / "var/etcd/data/member/wal"
    folder.mkdir(parents=True)
    (folder / name).touch()
    return point


def test_a_write_ahead_log_is_data(tmp_path: Path) -> None:
    assert data_of(with_log(tmp_path), DATA, an_identity()) is Data.PRESENT


def test_folders_alone_or_a_log_that_is_not_finished_are_no_data(tmp_path: Path) -> None:
    assert data_of(tmp_path, DATA, an_identity()) is Data.MISSING
    with_log(tmp_path, "0.tmp")
    assert data_of(tmp_path, DATA, an_identity()) is Data.MISSING


def test_data_of_another_etcd_cluster_is_none_of_this_one(tmp_path: Path) -> None:
    assert data_of(with_log(tmp_path), "/var/etcd/data-events", an_identity()) is Data.MISSING


def test_data_without_an_identity_is_the_layout_of_the_original(tmp_path: Path) -> None:
    assert data_of(with_log(tmp_path), DATA, None) is Data.ORIGINAL


def test_a_manifest_without_an_identity_is_the_layout_of_the_original_too(tmp_path: Path) -> None:
    (tmp_path / "k8s.io").mkdir()
    assert data_of(tmp_path, DATA, None) is Data.ORIGINAL
    assert data_of(tmp_path, DATA, an_identity()) is Data.MISSING


def test_what_mkfs_makes_is_empty_and_anything_else_is_not(tmp_path: Path) -> None:
    assert is_empty(tmp_path)
    (tmp_path / "lost+found").mkdir()
    assert is_empty(tmp_path)
    (tmp_path / ".hidden").touch()
    assert not is_empty(tmp_path)


def test_an_identity_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    assert read_identity(tmp_path) is None
    (tmp_path / FILE).write_bytes(encode(an_identity()))
    assert read_identity(tmp_path) == an_identity()
    (tmp_path / FILE).write_bytes(encode(an_identity())[:-10])
    assert isinstance(read_identity(tmp_path), Unreadable)


def test_an_identity_that_the_disk_does_not_give_is_not_taken_for_none(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    assert read_identity(tmp_path) == Unreadable(f"{FILE}: Is a directory")


def test_an_error_of_the_disk_is_something_to_wait_for(tmp_path: Path) -> None:
    with pytest.raises(TryLater, match="reading it: no such file or directory"):
        on_volume(lambda: (tmp_path / "x").read_text(), "reading it")


def test_mounts_are_ours_by_their_place_alone(tmp_path: Path) -> None:
    class Mounts:
        def mounts(self) -> list[Mount]:
            places = ["mnt/master-vol-a", "mnt/other", "mnt/master-vol-b/deeper", "srv/master-vol-c"]
            return [
                Mount(number=(8, number), point=tmp_path / place, type="ext4", options=frozenset())
                for number, place in enumerate(places)
            ]

    edges = a_round(tmp_path, disks=Mounts()).edges
    assert list(mounted_volumes.mounted(edges)) == ["vol-a"]
    assert edges.inside(point_of("vol-a")) == tmp_path / "mnt/master-vol-a"
