"""The kernel's mount tables are read to the letter, in every namespace there is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protokube.host import Mount
from protokube.host.child.mountinfo import Line, parse, shown_anywhere, unescape
from protokube.host.mounts import mounts
from protokube.host.mounts import parse as parse_mounts

steady = settings(derandomize=True, deadline=None)

TABLE = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
36 35 98:0 /mnt1 /mnt/parent rw,noatime master:1 - ext3 /dev/root rw,errors=continue
37 35 7:3 / /mnt/with\\040blank\\011tab\\012line\\134slash rw,nosuid shared:7 master:1 - ext4 /dev/loop3 ro
38 35 0:44 / /mnt/odd rw - fuse.s\\040x dev\\040with\\040blanks rw,user_id=0
39 35 259:1048575 / /mnt/ümlaut rw - ext4 /dev/nvme0n1 rw,a=b
"""


def test_each_line_becomes_a_mount() -> None:
    number_and_point = [(line.number, line.point, line.type) for line in parse(TABLE)]

    assert number_and_point == [
        ((0, 21), "/proc", "proc"),
        ((98, 0), "/mnt/parent", "ext3"),
        ((7, 3), "/mnt/with blank\ttab\nline\\slash", "ext4"),
        ((0, 44), "/mnt/odd", "fuse.s x"),
        ((259, 1048575), "/mnt/ümlaut", "ext4"),
    ]


def test_options_of_the_mount_and_of_the_file_system_are_both_there() -> None:
    assert parse(TABLE)[1].options == {"rw", "noatime", "errors=continue"}
    assert parse(TABLE)[2].options == {"rw", "nosuid", "ro"}


def test_no_mounts_are_an_empty_table() -> None:
    assert parse("") == []


@pytest.mark.parametrize(
    "line",
    ["nonsense", "1 2 3 4 5 6", "1 2 a:b / /x rw - ext4 x rw", "1 2 1:1 / /x rw - ext4", "x 2 1:1 / /x rw - ext4 x rw"],
)
def test_a_line_that_is_not_understood_is_an_error_and_not_left_out(line: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(TABLE + line)


@steady
@given(name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_whatever_the_kernel_escapes_is_read_back(name: str) -> None:
    escaped = "".join(f"\\{ord(letter):03o}" if letter in " \t\n\\" else letter for letter in name)

    assert unescape(escaped) == name
    assert parse(f"1 2 7:1 / /{escaped} rw - ext4 /dev/x rw\n")[0].point == f"/{name}"


def test_mounts_are_given_as_values() -> None:
    found = parse_mounts("36 35 98:0 / /mnt/a rw - ext4 /dev/root rw,x=y\n")

    options = frozenset({"rw", "x=y"})
    assert found == (Mount(number=(98, 0), point=Path("/mnt/a"), type="ext4", options=options, id=36),)


def test_the_table_of_this_machine_has_its_root() -> None:
    root = next(mount for mount in mounts() if mount.point == Path("/"))

    device = Path("/").stat().st_dev
    assert root.number == (os.major(device), os.minor(device))


class Processes:
    """A made-up /proc."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "self").mkdir(parents=True)

    def add(self, pid: int, namespace: str, root: str, table: str | None) -> None:
        place = self.folder / str(pid)
        (place / "ns").mkdir(parents=True)
        (place / "ns/mnt").symlink_to(namespace)
        (place / "root").symlink_to(root)
        if table is not None:
            (place / "mountinfo").write_text(table)


SHOWN = "36 35 7:3 / /mnt/a rw - ext4 /dev/loop3 rw\n"
HIDDEN = "36 35 7:33 / /mnt/a rw - ext4 /dev/loop33 rw\n37 35 17:3 / /mnt/b rw - ext4 /dev/7:3 rw\n"


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path / "proc")


def test_a_device_is_seen_in_each_namespace_once(processes: Processes) -> None:
    processes.add(1, "mnt:[1]", "/", SHOWN)
    processes.add(2, "mnt:[1]", "/", SHOWN)
    processes.add(30, "mnt:[2]", "/", SHOWN)
    processes.add(4, "mnt:[3]", "/", HIDDEN)

    assert shown_anywhere((7, 3), processes.folder) == [1, 30]


def test_a_process_in_a_chroot_does_not_stand_for_its_namespace(processes: Processes) -> None:
    processes.add(1, "mnt:[1]", "/srv/chroot", HIDDEN)
    processes.add(2, "mnt:[1]", "/", SHOWN)

    assert shown_anywhere((7, 3), processes.folder) == [2]


def test_a_process_that_has_gone_is_passed_over(processes: Processes) -> None:
    processes.add(1, "mnt:[1]", "/", None)
    (processes.folder / "2").mkdir()
    processes.add(3, "mnt:[1]", "/", SHOWN)

    assert shown_anywhere((7, 3), processes.folder) == [3]


def test_a_table_that_cannot_be_read_is_not_taken_for_an_empty_one(processes: Processes) -> None:
    processes.add(1, "mnt:[1]", "/", None)
    (processes.folder / "1/mountinfo").mkdir()

    with pytest.raises(IsADirectoryError):
        shown_anywhere((7, 3), processes.folder)


def test_a_line_is_a_value() -> None:
    assert parse(SHOWN) == [Line((7, 3), "/mnt/a", "ext4", frozenset({"rw"}), 36)]
