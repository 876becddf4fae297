"""The images of a host's containerd: imported once in the cache, copied by each new host."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from protokube.local.node import imported


def programs(folder: Path, containerd: str, ctr: str) -> Path:
    """The far side: programs with the names of containerd's."""
    for name, text in (("containerd", containerd), ("ctr", ctr)):
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return folder


def a_root(folder: Path, content: str = "layer") -> Path:
    (folder / "blobs").mkdir(parents=True)
    (folder / "blobs" / "one").write_text(content)
    return folder


class TestCopy:
    def test_a_new_host_gets_a_copy_of_its_own(self, tmp_path: Path) -> None:
        source = a_root(tmp_path / "cache")

        assert imported.copy(source, tmp_path / "containerd")

        (tmp_path / "containerd" / "blobs" / "one").write_text("changed by the host")
        assert (source / "blobs" / "one").read_text() == "layer"

    def test_a_host_that_has_images_keeps_them(self, tmp_path: Path) -> None:
        own = a_root(tmp_path / "containerd", "its own")

        assert not imported.copy(a_root(tmp_path / "cache"), own)

        assert (own / "blobs" / "one").read_text() == "its own"

    def test_a_host_killed_while_it_copied_begins_again(self, tmp_path: Path) -> None:
        (a_root(tmp_path / "containerd.new", "half") / "left").touch()

        assert imported.copy(a_root(tmp_path / "cache"), tmp_path / "containerd")

        assert [path.name for path in (tmp_path / "containerd").iterdir()] == ["blobs"]
        assert (tmp_path / "containerd" / "blobs" / "one").read_text() == "layer"

    def test_a_root_that_left_the_cache_is_not_missed(self, tmp_path: Path) -> None:
        assert not imported.copy(tmp_path / "gone", tmp_path / "containerd")
        assert not (tmp_path / "containerd").exists()

    def test_a_root_that_is_removed_while_it_is_copied_is_not_taken_for_a_whole_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        source, found = a_root(tmp_path / "cache"), tmp_path / "bin"
        found.mkdir()
        # As long as the real one takes, another process renames the source, and begins to remove it.
        (found / "cp").write_text(f'#!/bin/sh\nmv {source} {source}.old\nrm {source}.old/blobs/one\nmkdir "$4"\n')
        (found / "cp").chmod(0o755)
        monkeypatch.setenv("PATH", f"{found}:{os.environ['PATH']}")

        assert not imported.copy(source, tmp_path / "containerd")

        assert "was removed meanwhile" in capsys.readouterr().err
        assert not list(tmp_path.glob("containerd*"))

    def test_a_copy_that_fails_leaves_nothing(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        source = a_root(tmp_path / "cache")
        place = tmp_path / "no" / "such" / "folder" / "containerd"

        assert not imported.copy(source, place)

        assert capsys.readouterr().err.startswith("images are imported, not copied: cp: ")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["cache"]


class TestCache:
    def test_another_image_or_another_containerd_gets_another_root(self, tmp_path: Path) -> None:
        found = programs(tmp_path / "programs", "", "")
        keys = [imported.key({"pause": Path(f"pause-{digest}.tar")}, found) for digest in ("1", "2")]
        os.utime(found / "containerd", ns=(1, 1))
        keys.append(imported.key({"pause": Path("pause-1.tar")}, found))

        assert len(set(keys)) == 3

    def test_only_the_roots_that_were_used_last_stay(self, tmp_path: Path) -> None:
        for number in range(5):
            a_root(tmp_path / str(number))
            os.utime(tmp_path / str(number), ns=(number, number))
        (tmp_path / ".lock").touch()

        assert [path.name for path in imported.superfluous(tmp_path)] == ["1", "0"]

    def test_a_containerd_that_does_not_start_leaves_nothing(self, tmp_path: Path) -> None:
        found = programs(tmp_path / "programs", "exit 1", "exit 1")

        with pytest.raises(subprocess.SubprocessError):
            imported.obtain({"pause": tmp_path / "pause.tar"}, found, tmp_path, ())

        assert [path.name for path in (tmp_path / imported.FOLDER).iterdir()] == [".lock"]

    def test_a_failed_import_leaves_nothing_that_a_host_would_copy(self, tmp_path: Path) -> None:
        found = programs(tmp_path / "programs", "exec sleep 600", 'case "$*" in *import*) exit 1;; esac')
        draft = tmp_path / imported.FOLDER / ".draft-of-a-build-that-was-killed"
        draft.mkdir(parents=True)

        with pytest.raises(subprocess.SubprocessError):
            imported.obtain({"pause": tmp_path / "pause.tar"}, found, tmp_path, ())

        assert [path.name for path in (tmp_path / imported.FOLDER).iterdir()] == [".lock"]
