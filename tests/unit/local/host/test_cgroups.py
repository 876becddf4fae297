"""Cgroups of hosts: finding and removing those that are ours."""

from __future__ import annotations

from pathlib import Path

from protokube.local.host import cgroups


def test_groups_are_removed_from_the_inside_out_and_a_missing_one_is_gone_already(tmp_path: Path) -> None:
    (tmp_path / "ours/host/kubepods/pod1").mkdir(parents=True)
    wanted = [tmp_path / "ours", tmp_path / "never-there"]
    assert cgroups.remove(wanted) == wanted
    assert list(tmp_path.iterdir()) == []


def test_a_group_that_somebody_is_in_stays_and_is_not_said_to_be_gone(tmp_path: Path) -> None:
    (tmp_path / "ours/host").mkdir(parents=True)
    (tmp_path / "ours/host/busy").touch()  # a folder that cannot be removed, as a group with processes cannot
    assert cgroups.remove([tmp_path / "ours"], patience=0) == []
    assert (tmp_path / "ours/host").is_dir()


def test_a_cloud_that_never_was_has_left_nothing() -> None:
    assert cgroups.find(cgroups.name("pk-no-such-switch")) == []
    cgroups.sweep(cgroups.name("pk-no-such-switch"), ["h1"])
