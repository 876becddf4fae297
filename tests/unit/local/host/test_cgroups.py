"""Cgroups of hosts: parsing /proc/self/cgroup, and finding and removing our cgroups."""

from __future__ import annotations

from pathlib import Path

import pytest

from protokube.local.host import cgroups
from protokube.local.host.cgroups import Hierarchy

HYBRID = "9:name=systemd:/user.slice\n4:memory:/a/b\n2:cpu,cpuacct:/\n0::/user.slice\n"


def test_every_tree_is_read_with_the_group_we_are_in() -> None:
    assert cgroups.read(HYBRID) == [
        Hierarchy(("name=systemd",), "/user.slice"),
        Hierarchy(("memory",), "/a/b"),
        Hierarchy(("cpu", "cpuacct"), "/"),
        Hierarchy((), "/user.slice"),
    ]


def test_a_group_with_a_colon_in_its_name_is_read_whole() -> None:
    assert cgroups.read("4:memory:/a:b\n") == [Hierarchy(("memory",), "/a:b")]


@pytest.mark.parametrize(
    ("controllers", "folder", "mount"),
    [
        (("memory",), "memory", ("cgroup", "memory")),
        (("cpu", "cpuacct"), "cpu,cpuacct", ("cgroup", "cpu,cpuacct")),
        (("name=systemd",), "systemd", ("cgroup", "none,name=systemd")),
        ((), "unified", ("cgroup2", "")),
    ],
)
def test_a_tree_is_mounted_where_programs_look_for_it(
    controllers: tuple[str, ...], folder: str, mount: tuple[str, str]
) -> None:
    tree = Hierarchy(controllers, "/")
    assert (tree.folder, tree.mount) == (folder, mount)


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
