"""The state folder of a local cloud, and folders that it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from protokube.errors import Refused
from protokube.local.base.paths import PARENT, Paths


def test_the_state_of_a_cluster_lies_under_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PROTOKUBE_STATE", raising=False)
    assert Paths.of("dev").root == PARENT / "dev"

    monkeypatch.setenv("PROTOKUBE_STATE", str(tmp_path))
    assert Paths.of("dev").root == tmp_path / "dev"
    assert Paths.of("dev").cluster == "dev"


def test_links_are_resolved_since_the_kernel_reports_files_without_them(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    assert Paths.at(tmp_path / "link" / "dev").root == tmp_path / "real" / "dev"


def test_two_folders_have_two_switches_and_one_folder_always_the_same(tmp_path: Path) -> None:
    one, other = Paths.at(tmp_path / "one"), Paths.at(tmp_path / "other")

    assert one.switch != other.switch
    assert one.switch == Paths.at(tmp_path / "x" / ".." / "one").switch
    assert one.switch.startswith("pk-")
    assert len(one.switch) == len("pk-") + 8


def test_a_folder_is_made_once_and_again_without_harm(tmp_path: Path) -> None:
    paths = Paths.at(tmp_path / "dev")
    assert not paths.is_ours()

    paths.create()
    (paths.disks / "vol-1.img").write_text("data")
    paths.create()

    assert paths.is_ours()
    assert (paths.disks / "vol-1.img").read_text() == "data"
    assert paths.image("vol-1").stem == "vol-1"


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")

    with pytest.raises(Refused, match="in use for something else"):
        Paths.at(tmp_path).create()

    assert os.listdir(tmp_path) == ["thesis.tex"]  # noqa: PTH208


@pytest.mark.parametrize("before", [None, 0o755, 0o777])
def test_a_state_is_closed_to_others_also_where_its_folder_was_there_and_open(
    tmp_path: Path, before: int | None
) -> None:
    paths = Paths.at(tmp_path / "dev")
    if before is not None:
        paths.root.mkdir()
        paths.root.chmod(before)

    paths.create()

    for folder in (paths.root, paths.disks, paths.store, paths.hosts):
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_others_see_which_clusters_there_are_and_can_replace_none_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    parent, before = tmp_path / "protokube" / "local", os.umask(mask)
    try:
        Paths.at(parent / "dev").create()
    finally:
        os.umask(before)

    modes = [folder.stat().st_mode & 0o777 for folder in (parent.parent, parent, parent / "dev")]
    assert modes == [0o755, 0o755, 0o700]


def test_a_folder_that_another_user_made_first_is_not_used(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)

    with pytest.raises(Refused, match="belongs to user 65534"):
        Paths.at(tmp_path).create()

    assert list(tmp_path.iterdir()) == []


def test_what_up_wrote_before_the_cloud_began_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "daemon.log").write_text("")
    (tmp_path / "store").mkdir()

    Paths.at(tmp_path).create()

    assert Paths.at(tmp_path).is_ours()
