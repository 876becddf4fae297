"""Roots of containerd with imported images: each built once in the cache, and only a complete one is used."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from protokube.local.node import imported, prepared

DATABASE = "io.containerd.metadata.v1.bolt/meta.db"


def programs(folder: Path, containerd: str, ctr: str) -> Path:
    """The far side: programs with the names of containerd's."""
    for name, text in (("containerd", containerd), ("ctr", ctr)):
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return folder


CONTAINERD = """root=$(sed -n 's/^root = "\\(.*\\)"/\\1/p' "$2")
folder="$root/io.containerd.metadata.v1.bolt"
mkdir -p "$folder" && echo started >> "$folder/meta.db"
touch "${0%/*}/ready"
trap 'rm -f "${0%/*}/ready"; kill $!; exit' TERM
sleep 600 & wait"""
"""Writes to the database in its root, as the real one does at every start."""
CTR = """log="${0%/*}/imports"
case "$*" in
*"images import"*) echo "$7" >> "$log" ;;
*"images list"*) [ -e "${0%/*}/ready" ] && { cat "$log" 2>/dev/null || true; } ;;
esac"""
"""Lists what it has imported."""


class TestCache:
    def test_another_image_or_another_containerd_gets_another_root(self, tmp_path: Path) -> None:
        found = programs(tmp_path / "programs", "", "")
        keys = [imported.key({"pause": Path(f"pause-{digest}.tar")}, found) for digest in ("1", "2")]
        os.utime(found / "containerd", ns=(1, 1))
        keys.append(imported.key({"pause": Path("pause-1.tar")}, found))

        assert len(set(keys)) == 3

    def test_only_the_roots_that_were_used_last_stay(self, tmp_path: Path) -> None:
        for number in range(imported.KEPT + 2):
            (tmp_path / str(number)).mkdir()
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

    def test_a_root_is_built_once(self, tmp_path: Path) -> None:
        found = programs(tmp_path / "programs", CONTAINERD, CTR)
        images = {"pause": tmp_path / "pause.tar"}

        first = imported.obtain(images, found, tmp_path, ())
        before = first.stat().st_ino
        again = imported.obtain(images, found, tmp_path, ())

        assert (again, again.stat().st_ino) == (first, before)
        assert prepared.images(first) == {"pause"}

    def test_a_root_that_lost_a_part_is_built_again(self, tmp_path: Path) -> None:
        found = programs(tmp_path / "programs", CONTAINERD, CTR)
        images = {"pause": tmp_path / "pause.tar"}
        root = imported.obtain(images, found, tmp_path, ())
        (root / DATABASE).unlink()

        assert imported.obtain(images, found, tmp_path, ()) == root

        assert prepared.is_whole(root)
        assert (root / DATABASE).exists()
        assert not list((tmp_path / imported.FOLDER).glob(".draft-*"))

    def test_one_that_begins_with_another_imports_only_what_is_new_and_leaves_the_other_as_it_was(
        self, tmp_path: Path
    ) -> None:
        found = programs(tmp_path / "programs", CONTAINERD, CTR)
        base = imported.obtain({"pause": Path("pause")}, found, tmp_path, ())
        before = (base / DATABASE).read_text()

        both = imported.obtain({"pause": Path("pause"), "ours": Path("ours")}, found, tmp_path, (), base)

        assert (found / "imports").read_text().split() == ["pause", "ours"]
        assert (both / DATABASE).read_text() == before + "started\n"
        assert (base / DATABASE).read_text() == before
        assert prepared.is_whole(base)
        assert prepared.images(both) == {"pause", "ours"}

    def test_a_base_that_lost_a_part_is_not_built_upon(self, tmp_path: Path) -> None:
        found = programs(tmp_path / "programs", CONTAINERD, CTR)
        base = imported.obtain({"pause": Path("pause")}, found, tmp_path, ())
        (base / DATABASE).unlink()

        with pytest.raises(OSError, match="a part of it is gone"):
            imported.obtain({"pause": Path("pause"), "ours": Path("ours")}, found, tmp_path, (), base)

        assert [path.name for path in (tmp_path / imported.FOLDER).iterdir() if path != base] == [".lock"]
