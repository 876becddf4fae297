"""Adopting a volume of the original, on a real ext4 behind a loop device."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.original import lay_out
from protokube.agent.volume.mounted_volumes import data_of, read_identity
from protokube.errors import TryLater
from protokube.local.adopting import carry_out, read_layout
from protokube.members.adopt import Adopt, Adopted, decide_adopt
from protokube.members.generation import Generation, decode, encode
from protokube.members.identity import Identity, Nominated
from protokube.members.start_values import Data
from protokube.store import layout
from protokube.store.file import FileStore

TAGS = Nominated(cluster="dev.local", etcd_cluster="main", member="a", volume="vol-1")
PATH = layout.etcd_generation("dev.local", "main")
RECORD = Generation(id="g1", etcd_cluster="main", token="t", founders={}, replacements={}, open=True)


def run(*command: str | Path) -> None:
    subprocess.run([str(each) for each in command], check=True, capture_output=True)


class Disk:
    """An ext4 in a file, mounted and unmounted."""

    def __init__(self, folder: Path) -> None:
        self.image, self.point = folder / "vol-1.img", folder / "mnt"
        self.point.mkdir()
        with self.image.open("wb") as file:
            file.truncate(32 * 1024 * 1024)
        run("mkfs.ext4", "-q", "-F", self.image)

    def mount(self) -> None:
        run("mount", "-o", "loop", self.image, self.point)

    def unmount(self) -> None:
        subprocess.run(["umount", str(self.point)], check=False, capture_output=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    made = Disk(tmp_path)
    made.mount()
    try:
        lay_out(made.point)
        yield made
    finally:
        made.unmount()


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    made = FileStore(tmp_path / "store")
    made.create(PATH, encode(RECORD))
    return made


def decision(disk: Disk, record: Generation = RECORD) -> Adopt:
    found = decide_adopt(read_layout(disk.point), TAGS, "etcd-a", record, "", 0)
    assert isinstance(found, Adopt), found
    return found


def test_what_lies_on_the_volume_is_seen_as_the_original_left_it(disk: Disk) -> None:
    found = read_layout(disk.point)

    assert found.identity is None
    assert found.logs == {"data": 1}
    assert found.database_size == 20480
    assert list(found.manifests) == ["etcd.manifest"]
    assert data_of(disk.point, "/var/etcd/data", None) is Data.ORIGINAL


def test_an_adopted_volume_is_ours_after_it_was_unmounted_and_mounted_again(disk: Disk, store: FileStore) -> None:
    done = carry_out(decision(disk), disk.point, store, "dev.local")
    disk.unmount()
    disk.mount()

    assert done == [
        "closed the creation of main: no new etcd cluster is created next to this data",
        "wrote protokube.json on vol-1",
    ]
    identity = read_identity(disk.point)
    assert isinstance(identity, Identity)
    assert (identity.member, identity.generation, identity.holder) == ("a", "g1", "adopted")
    assert data_of(disk.point, "/var/etcd/data", identity) is Data.PRESENT
    record = decode(store.read(PATH).data)
    assert record is not None
    assert not record.open
    assert isinstance(decide_adopt(read_layout(disk.point), TAGS, "etcd-a", record, "", 0), Adopted)


def test_a_record_that_is_closed_already_is_left_as_it_is(disk: Disk, store: FileStore) -> None:
    store.put(PATH, encode(RECORD.closed()))

    assert carry_out(decision(disk, RECORD.closed()), disk.point, store, "dev.local") == [
        "wrote protokube.json on vol-1"
    ]


def test_a_record_that_became_another_meanwhile_stops_it_before_anything_is_written(
    disk: Disk, store: FileStore
) -> None:
    chosen = decision(disk)
    store.put(
        PATH, encode(Generation(id="g2", etcd_cluster="main", token="t", founders={}, replacements={}, open=True))
    )
    with pytest.raises(TryLater, match="changed meanwhile"):
        carry_out(chosen, disk.point, store, "dev.local")

    assert read_identity(disk.point) is None


def test_data_and_manifest_of_the_original_are_not_touched(disk: Disk, store: FileStore) -> None:
    files = [each for each in disk.point.rglob("*") if each.is_file()]
    before = {each: each.read_bytes() for each in files}
    carry_out(decision(disk), disk.point, store, "dev.local")

    assert {each: each.read_bytes() for each in files} == before
