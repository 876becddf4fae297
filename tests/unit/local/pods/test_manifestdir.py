"""The folder of manifests, with real files: which are manifests, which are read again, and when to list again."""

from __future__ import annotations

import itertools
import json
import os
import select
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.hosts import a_pod
from protokube.local.pods.manifestdir import LARGEST, LOOKS, ManifestDir
from protokube.local.pods.plan import Reading


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "etc" / "manifests"


@pytest.fixture
def manifests(folder: Path) -> Iterator[ManifestDir]:
    made = ManifestDir(folder)
    made.look()
    yield made
    os.close(made.handle)


def text(name: str = "a") -> str:
    return json.dumps(a_pod(name))


def only(readings: object) -> Reading:
    assert isinstance(readings, list)
    (reading,) = readings
    assert isinstance(reading, Reading)
    return reading


def is_worth_a_look(manifests: ManifestDir) -> bool:
    seen = bool(select.select([manifests.handle], [], [], 0.5)[0])
    manifests.drain()
    return seen


def test_a_folder_that_is_not_there_is_made(manifests: ManifestDir, folder: Path) -> None:
    assert folder.is_dir()
    assert manifests.look() == []


def test_pods_come_in_the_order_of_their_files(manifests: ManifestDir, folder: Path) -> None:
    for name in ("b", "c", "a"):
        (folder / f"{name}.yaml").write_text(text(name))
    assert [(each.file, each.pod and each.pod.name) for each in manifests.look()] == [
        ("a.yaml", "a"),
        ("b.yaml", "b"),
        ("c.yaml", "c"),
    ]


@pytest.mark.parametrize("name", ["a.yaml", "a.json", "a.manifest"])
def test_these_are_manifests(manifests: ManifestDir, folder: Path, name: str) -> None:
    (folder / name).write_text(text())
    assert only(manifests.look()).pod is not None


@pytest.mark.parametrize("name", [".a.yaml", ".a.yaml.swp", ".#a.yaml"])
def test_hidden_files_are_nobodys_business(manifests: ManifestDir, folder: Path, name: str) -> None:
    (folder / name).write_text(text())
    assert manifests.look() == []


@pytest.mark.parametrize("name", ["a.yaml.bak", "a.yaml~", "#a.yaml#", "README", "a.yml", "yaml"])
def test_other_files_are_told_and_not_run(manifests: ManifestDir, folder: Path, name: str) -> None:
    (folder / name).write_text(text())
    reading = only(manifests.look())
    assert reading.pod is None
    assert reading.problem == "passed over: its name ends in none of .manifest, .yaml, .json"


def test_links_are_followed_and_a_dangling_one_is_no_pod(manifests: ManifestDir, folder: Path, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    (folder / "etcd.manifest").symlink_to(volume / "etcd.manifest")
    assert manifests.look() == []
    volume.mkdir()
    (volume / "etcd.manifest").write_text(text("etcd"))
    found = only(manifests.look()).pod
    assert found is not None
    assert found.name == "etcd"
    shutil.rmtree(volume)
    assert manifests.look() == []


def test_a_link_to_a_link_is_followed(manifests: ManifestDir, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text(text())
    (tmp_path / "middle").symlink_to("real.yaml")
    (folder / "a.yaml").symlink_to(tmp_path / "middle")
    assert only(manifests.look()).pod is not None


@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "loop"])
def test_what_is_no_file_is_told_at_once(manifests: ManifestDir, folder: Path, kind: str) -> None:
    place = folder / "odd.yaml"
    match kind:
        case "folder":
            place.mkdir()
        case "pipe":
            os.mkfifo(place)
        case "socket":
            os.mknod(place, 0o140600)
        case "loop":
            place.symlink_to("odd.yaml")
    reading = only(manifests.look())
    assert reading.pod is None
    assert reading.problem


def test_a_file_that_cannot_be_read_is_told(manifests: ManifestDir, folder: Path) -> None:
    (folder / "large.yaml").write_bytes(b"#" * (LARGEST + 1))
    (folder / "latin.yaml").write_bytes(b"\xe9")
    (folder / "words.yaml").write_text("just words")
    assert [reading.problem for reading in manifests.look()] == [
        f"larger than {LARGEST} bytes",
        "not UTF-8",
        "not a pod: the file holds no mapping",
    ]


def test_what_did_not_change_is_not_read_again(manifests: ManifestDir, folder: Path) -> None:
    (folder / "a.yaml").write_text(text())
    first = only(manifests.look())
    assert only(manifests.look()) is first
    (folder / "a.yaml").rename(folder / ".aside")
    assert manifests.look() == []
    (folder / ".aside").rename(folder / "a.yaml")
    assert only(manifests.look()) == first


@pytest.mark.parametrize("how", ["in place", "renamed over", "another link"])
def test_what_changed_is_read_again(manifests: ManifestDir, folder: Path, tmp_path: Path, how: str) -> None:
    place = folder / "a.yaml"
    (tmp_path / "old").write_text(text("pod-1"))
    (tmp_path / "new").write_text(text("pod-2"))
    place.symlink_to(tmp_path / "old")
    before = only(manifests.look()).pod
    match how:
        case "in place":
            (tmp_path / "old").write_text(text("pod-2"))
        case "renamed over":
            (tmp_path / "new").rename(tmp_path / "old")
        case "another link":
            (tmp_path / "link").symlink_to(tmp_path / "new")
            (tmp_path / "link").rename(place)
    after = only(manifests.look()).pod
    assert before is not None
    assert after is not None
    assert (before.name, after.name) == ("pod-1", "pod-2")


def test_reading_hinders_no_writer(manifests: ManifestDir, folder: Path) -> None:
    (folder / "a.yaml").write_text(text())
    manifests.look()
    handle = os.open(folder / "a.yaml", os.O_WRONLY | os.O_NONBLOCK)  # would fail while somebody has a lease
    os.close(handle)


def test_everything_that_matters_is_worth_a_look(manifests: ManifestDir, folder: Path, tmp_path: Path) -> None:
    manifests.drain()
    (folder / "a.yaml").write_text(text())
    assert is_worth_a_look(manifests)
    (tmp_path / "b.yaml").write_text(text("b"))
    (tmp_path / "b.yaml").rename(folder / "b.yaml")
    assert is_worth_a_look(manifests)
    (folder / "c.yaml").symlink_to("/nowhere")
    assert is_worth_a_look(manifests)
    (folder / "c.yaml").unlink()
    assert is_worth_a_look(manifests)
    (folder / "b.yaml").rename(tmp_path / "b.yaml")
    assert is_worth_a_look(manifests)


def test_looking_is_not_worth_a_look(manifests: ManifestDir, folder: Path) -> None:
    (folder / "a.yaml").write_text(text())
    manifests.look()
    manifests.drain()
    manifests.look()
    assert not select.select([manifests.handle], [], [], 0.05)[0], "it would look for ever"


def test_a_folder_that_was_replaced_is_watched_again(manifests: ManifestDir, folder: Path) -> None:
    shutil.rmtree(folder)
    assert manifests.look() == []
    manifests.drain()
    (folder / "a.yaml").write_text(text())
    assert is_worth_a_look(manifests)
    assert only(manifests.look()).pod is not None


class Meanwhile(ManifestDir):
    """Somebody gives files other names, before or after they are read, while the folder is looked at."""

    def __init__(self, folder: Path, before: Iterator[str], after: Iterator[str]) -> None:
        super().__init__(folder)
        self.before, self.after = before, after

    def _read(self, entry: os.DirEntry[str]) -> Reading | None:
        self._rename(self.before)
        found = super()._read(entry)
        self._rename(self.after)
        return found

    def _rename(self, names: Iterator[str]) -> None:
        for name in itertools.islice(names, 1):
            (only_file,) = self._folder.iterdir()
            only_file.rename(self._folder / name)


def test_a_file_that_gets_another_name_while_the_folder_is_read_is_not_gone(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "a.json").write_text(text())
    manifests = Meanwhile(folder, iter(["a.json", "b.json"]), iter([]))
    assert only(manifests.look()).file == "a.json"

    found = only(manifests.look())

    assert found.file == "b.json"
    assert found.pod is not None
    (folder / "b.json").unlink()
    assert manifests.look() == []
    os.close(manifests.handle)


def test_a_folder_in_which_names_change_all_the_time_is_read_in_the_end(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "a.json").write_text(text())
    manifests = Meanwhile(folder, iter([]), (f"{number}.json" for number in itertools.count()))
    manifests.look()
    found = only(manifests.look())
    assert found.file == f"{LOOKS - 1}.json"
    assert found.pod is not None
    os.close(manifests.handle)
