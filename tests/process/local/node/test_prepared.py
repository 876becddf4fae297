"""A containerd root with unpacked images: kept by the cluster, shared by its hosts, and never written by them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from protokube.local.node import prepared

BLOBS, SNAPSHOTS = prepared.SHARED
DATABASE = "io.containerd.metadata.v1.bolt/meta.db"
PROGRAM = f"{SNAPSHOTS}/7/fs/bin/program"


def a_root(folder: Path) -> Path:
    for path, content in ((f"{BLOBS}/0123", "layer"), (PROGRAM, "unpacked"), (DATABASE, "what there is")):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    (folder / SNAPSHOTS / "7/fs/bin/same").symlink_to("program")
    prepared.describe(folder, ["pause:3", "etcd:3"])
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return a_root(tmp_path / "cache" / "key")


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder on another file system."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


class TestCluster:
    def test_it_keeps_the_images_when_they_go_from_the_cache(self, source: Path, tmp_path: Path) -> None:
        kept = prepared.link(source, tmp_path / "cluster")
        shutil.rmtree(source)

        assert prepared.is_whole(kept)
        assert prepared.images(kept) == {"pause:3", "etcd:3"}
        assert (kept / PROGRAM).read_text() == "unpacked"

    def test_it_takes_no_space_of_its_own(self, source: Path, tmp_path: Path) -> None:
        kept = prepared.link(source, tmp_path / "cluster")

        assert (kept / PROGRAM).samefile(source / PROGRAM)

    def test_on_another_file_system_it_is_a_copy(self, source: Path, elsewhere: Path) -> None:
        kept = prepared.link(source, elsewhere / "cluster")

        assert prepared.is_whole(kept)
        assert not (kept / PROGRAM).samefile(source / PROGRAM)

    def test_a_second_up_changes_nothing(self, source: Path, tmp_path: Path) -> None:
        before = prepared.link(source, tmp_path / "cluster").stat().st_ino
        shutil.rmtree(source)

        assert prepared.link(source, tmp_path / "cluster").stat().st_ino == before

    @pytest.mark.parametrize("gone", [PROGRAM, f"{BLOBS}/0123", DATABASE, prepared.ABOUT, "."])
    def test_a_root_that_lost_a_part_is_not_taken_and_leaves_nothing(
        self, source: Path, tmp_path: Path, gone: str
    ) -> None:
        place = source / gone
        shutil.rmtree(place) if place.is_dir() else place.unlink()

        with pytest.raises(OSError, match=r"a part of it is gone|No such file"):
            prepared.link(source, tmp_path / "cluster")

        assert list((tmp_path / "cluster").iterdir()) == []

    def test_a_truncated_file_is_a_lost_part(self, source: Path) -> None:
        os.truncate(source / PROGRAM, 3)

        assert not prepared.is_whole(source)

    def test_a_clone_with_databases_of_its_own_shares_all_the_rest(self, source: Path, tmp_path: Path) -> None:
        prepared.clone(source, tmp_path / "next")
        prepared.detach(tmp_path / "next")
        (tmp_path / "next" / DATABASE).write_text("with one image more")

        assert prepared.is_whole(source)
        assert (source / DATABASE).read_text() == "what there is"
        assert (tmp_path / "next" / PROGRAM).samefile(source / PROGRAM)
        assert not prepared.is_whole(tmp_path / "next"), "until it is described again"


class TestHost:
    def test_it_has_databases_and_folders_of_its_own_and_shares_the_images(self, source: Path, tmp_path: Path) -> None:
        root = tmp_path / "containerd"

        assert prepared.give(source, root)

        assert (root / PROGRAM).read_text() == "unpacked"
        (root / DATABASE).write_text("changed")
        (root / SNAPSHOTS / "8/fs").mkdir(parents=True)
        (root / BLOBS / "4567").write_text("another layer")
        (root / BLOBS / "0123").unlink()
        (root / SNAPSHOTS / "7").unlink()
        assert prepared.is_whole(source)
        assert (source / DATABASE).read_text() == "what there is"

    def test_it_holds_nothing_that_is_large(self, source: Path, tmp_path: Path) -> None:
        root = tmp_path / "containerd"
        prepared.give(source, root)

        own = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
        assert [str(path.relative_to(root)) for path in own] == [DATABASE]

    def test_images_that_it_has_stay(self, source: Path, tmp_path: Path) -> None:
        (tmp_path / "containerd").mkdir()

        assert not prepared.give(source, tmp_path / "containerd")
        assert list((tmp_path / "containerd").iterdir()) == []

    def test_killed_meanwhile_it_begins_again(self, source: Path, tmp_path: Path) -> None:
        (tmp_path / "containerd.new" / "half").mkdir(parents=True)

        assert prepared.give(source, tmp_path / "containerd")

        assert not (tmp_path / "containerd" / "half").exists()
        assert not (tmp_path / "containerd.new").exists()

    def test_without_a_prepared_root_it_starts_without_images(self, tmp_path: Path) -> None:
        assert not prepared.give(tmp_path / "gone", tmp_path / "containerd")
        assert not (tmp_path / "containerd").exists()

    def test_a_failure_leaves_nothing_and_is_told(
        self, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        place = tmp_path / "no" / "such" / "folder" / "containerd"

        assert not prepared.give(source, place)

        assert capsys.readouterr().err.startswith("images are imported, not shared: No such file or directory")
        assert not (tmp_path / "no").exists()
