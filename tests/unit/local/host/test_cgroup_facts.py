"""Whether hosts of a machine can run a real kubelet, from what machines of many kinds show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from protokube.local.host import cgroup_facts
from protokube.local.host.cgroup_facts import NEEDED_V2, Facts, Hierarchy, Mount, Top, is_unified, why_not

HYBRID = "9:name=systemd:/user.slice\n4:memory:/a/b\n2:cpu,cpuacct:/\n0::/user.slice\n"
EVERYONE = "         0          0 4294967295\n"
ROOT = "23 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
SEPARATE = """\
9:name=systemd:/
8:pids:/
7:blkio:/
6:freezer:/
5:devices:/
4:memory:/some/group
3:cpuset:/
2:cpuacct:/
1:cpu:/
0::/
"""
"""Each controller at a place of its own, version 2 beside them: a small virtual machine without systemd."""
MACHINE = Facts(own=SEPARATE, mounts=ROOT, users=EVERYONE, top=None)
TOP = Top(controllers=NEEDED_V2 | {"io"}, enabled=frozenset({"memory", "pids"}), machine=True, busy=True)
DEBIAN = replace(MACHINE, own="0::/user.slice/user-0.slice/session-1.scope\n", top=TOP)
"""Version 2 alone, as systemd mounts it; kernel threads are in its topmost group."""


def test_every_tree_is_read_with_the_group_we_are_in() -> None:
    assert cgroup_facts.read(HYBRID) == [
        Hierarchy(("name=systemd",), "/user.slice"),
        Hierarchy(("memory",), "/a/b"),
        Hierarchy(("cpu", "cpuacct"), "/"),
        Hierarchy((), "/user.slice"),
    ]


def test_a_group_with_a_colon_in_its_name_is_read_whole() -> None:
    assert cgroup_facts.read("4:memory:/a:b\n") == [Hierarchy(("memory",), "/a:b")]


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


def test_a_mount_table_is_read_with_blanks_in_names_and_with_optional_fields() -> None:
    text = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 master:2 - cgroup2 cgroup2 rw,nsdelegate\n"
    text += r"36 24 8:1 /a\040b /mnt/c\134d ro - ext4 /dev/sda1 rw" + "\n"
    assert cgroup_facts.read_mounts(text) == [
        Mount("/", "/sys/fs/cgroup", frozenset({"rw", "nosuid"}), "cgroup2"),
        Mount("/a b", "/mnt/c\\d", frozenset({"ro"}), "ext4"),
    ]


def test_a_machine_with_every_controller_in_version_1_can() -> None:
    assert why_not(MACHINE) == ""


def test_a_sandbox_that_shows_no_user_map_is_not_taken_for_a_user_namespace() -> None:
    assert why_not(replace(MACHINE, users="")) == ""


def test_in_a_user_namespace_it_cannot() -> None:
    assert "user namespace" in why_not(replace(MACHINE, users="0 100000 65536\n"))


def test_on_a_file_system_that_carries_no_overlay_it_cannot() -> None:
    table = "23 1 0:40 / / rw,relatime - overlay overlay rw,lowerdir=a,upperdir=b\n"
    assert why_not(replace(MACHINE, mounts=table)) == (
        "/var/lib/protokube is on a file system of type overlay, on which containers cannot be unpacked"
    )
    volume = table + "24 23 254:0 /volumes/1 /var/lib rw - ext4 /dev/vda rw\n"
    assert why_not(replace(MACHINE, mounts=volume)) == ""
    hidden = volume + "25 24 0:50 / /var/lib rw - overlay overlay rw\n"
    assert "overlay" in why_not(replace(MACHINE, mounts=hidden))
    beside = volume + "25 24 0:50 / /var/lib/protokube2 rw - overlay overlay rw\n"
    assert why_not(replace(MACHINE, mounts=beside)) == ""


def test_where_a_controller_is_missing_it_is_named() -> None:
    own = SEPARATE.replace("4:memory:/some/group\n", "").replace("8:pids:/\n", "")
    assert why_not(replace(MACHINE, own=own)) == (
        "there are no control groups of version 2, and those of version 1 lack memory and pids"
    )
    assert "cpu, cpuacct" in why_not(replace(MACHINE, own=""))
    short = replace(TOP, controllers=frozenset({"cpu", "io", "pids"}))
    assert why_not(replace(DEBIAN, top=short)) == "control groups of version 2 lack cpuset and memory here"


def test_a_controller_that_version_1_holds_is_not_looked_for_in_vain() -> None:
    divided = replace(DEBIAN, own="3:memory:/\n0::/\n", top=replace(TOP, controllers=NEEDED_V2 - {"memory"}))
    assert why_not(divided) == "control groups of version 2 lack memory here, of which version 1 has memory"


def test_a_machine_with_version_2_alone_can() -> None:
    assert why_not(DEBIAN) == ""
    assert is_unified(DEBIAN)


def test_version_1_is_preferred_where_it_has_every_controller() -> None:
    both = replace(MACHINE, top=replace(TOP, controllers=frozenset({"hugetlb"})))
    assert why_not(both) == ""
    assert not is_unified(both)


def test_a_container_whose_topmost_group_has_processes_cannot_unless_controllers_are_passed_on_already() -> None:
    container = replace(DEBIAN, top=replace(TOP, machine=False))
    assert why_not(container) == (
        "the topmost control group of this container has processes, so it cannot pass cpu and cpuset on to groups of "
        "hosts"
    )
    assert why_not(replace(container, top=replace(TOP, machine=False, busy=False))) == ""
    assert why_not(replace(container, top=replace(TOP, machine=False, enabled=NEEDED_V2))) == ""


def test_asking_changes_nothing_and_needs_no_file(tmp_path: Path) -> None:
    empty = cgroup_facts.observe(tmp_path / "state", tmp_path / "proc")
    assert (empty.own, empty.mounts, empty.top) == ("", "", None)
    assert list(tmp_path.iterdir()) == []


def test_the_topmost_group_is_the_one_where_programs_look_for_it() -> None:
    table = cgroup_facts.read_mounts(
        "1 0 0:30 / /run/other rw - cgroup2 cgroup2 rw\n2 0 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    )
    found = cgroup_facts.unified_mount(table)
    assert found is not None
    assert found.point == "/sys/fs/cgroup/unified"
    assert cgroup_facts.unified_mount([]) is None


def test_the_topmost_group_is_looked_at(tmp_path: Path) -> None:
    root = tmp_path
    for file, text in (
        ("controllers", "cpu io\n"),
        ("subtree_control", "cpu\n"),
        ("procs", "1\n"),
        ("type", "domain\n"),
    ):
        (root / f"cgroup.{file}").write_text(text)
    (root / "mountinfo").write_text(f"1 0 0:30 / {root} rw - cgroup2 cgroup2 rw\n")
    seen = cgroup_facts.observe(proc=root)
    assert seen.top == Top(controllers=frozenset({"cpu", "io"}), enabled=frozenset({"cpu"}), machine=False, busy=True)
