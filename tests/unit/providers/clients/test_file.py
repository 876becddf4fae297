"""Reading an inventory: what it means, and every way in which it can be wrong."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from protokube.providers.clients.file import InvalidInventory, Inventory, read_inventory

GOOD = """\
machines:
  - {id: rack-a, address: 10.0.0.11, zone: r1, group: control, name: alpha, external: 203.0.113.11}
  - id: rack-b
    address: 10.0.0.12
    master: no
disks:
  - machine: rack-a
    device: /dev/disk/by-id/nvme-1
    serial: S2
    size: 480103981056
    etcdCluster: main
    member: a
    blank: true
  - machine: rack-b
    device: /dev/disk/by-id/nvme-2
    serial: S1
    size: 100Gi
    etcdCluster: main
    member: b
  - machine: rack-b
    device: /dev/disk/by-path/pci-3
    size: 4096
    etcdCluster: events
    member: b
    id: spare
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "inventory.yaml"


def read(path: Path, text: str) -> Inventory:
    path.write_text(text)
    return read_inventory(path)


def problems(path: Path, text: str) -> list[str]:
    with pytest.raises(InvalidInventory) as caught:
        read(path, text)
    return [str(problem).replace(f"{path}:", "") for problem in caught.value.problems]


def test_a_good_inventory_says_who_there_is(path: Path) -> None:
    alpha, beta = read(path, GOOD).machines

    assert (alpha.id, alpha.name, alpha.zone, alpha.group, alpha.master) == ("rack-a", "alpha", "r1", "control", True)
    assert (beta.id, beta.name, beta.zone, beta.group, beta.master) == ("rack-b", "rack-b", "local", "masters", False)
    assert [(each.address, each.external) for each in (alpha, beta)] == [
        ("10.0.0.11", "203.0.113.11"),
        ("10.0.0.12", ""),
    ]


def test_a_good_inventory_says_which_disks_there_are_sorted_by_id(path: Path) -> None:
    disks = read(path, GOOD).disks

    assert [disk.id for disk in disks] == ["S1", "S2", "spare"]
    assert [disk.size for disk in disks] == [100 * 2**30, 480103981056, 4096]
    assert [disk.blank for disk in disks] == [False, True, False]
    assert [disk.serial for disk in disks] == ["S1", "S2", None]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("address: 10.0.0.12", "address: rack-b", "4 machines[1].address: 'rack-b' is not an IP address"),
        ("10.0.0.12", "10.0.0.11", "3 machines[1].address: 10.0.0.11 is there twice, first at machines[0]"),
        ("203.0.113.11", "alpha", "2 machines[0].external: 'alpha' is not an IP address"),
        ("203.0.113.11", "[203.0.113.11]", "2 machines[0].external: wants an IP address"),
        ("203.0.113.11", "10.0.0.12", "2 machines[0].external: 10.0.0.12 is the address of rack-b"),
        (
            "master: no",
            "external: 203.0.113.11",
            "3 machines[1].external: 203.0.113.11 is there twice, first at machines[0]",
        ),
        ("- id: rack-b", "- id: rack-a", "3 machines[1].id: rack-a is there twice, first at machines[0]"),
        ("master: no", "master: perhaps", "5 machines[1].master: wants true or false"),
        ("    master: no", "    role: no", "5 machines[1].role: there is no such field"),
        ("    address: 10.0.0.12\n", "", "3 machines[1].address: is missing"),
        ("serial: S2", "serial: S1", "14 disks[1].serial: S1 is there twice, first at disks[0]"),
        ("by-id/nvme-2", "by-id/nvme-1", "14 disks[1].device: /dev/disk/by-id/nvme-1 is there twice"),
        ("/dev/disk/by-id/nvme-1", "/dev/sda", "8 disks[0].device: /dev/sda may be another disk after a reboot"),
        ("size: 480103981056", "size: big", "10 disks[0].size: big is not the size of a disk"),
        ("size: 480103981056", "size: 0", "10 disks[0].size: 0 is not the size of a disk"),
        ("size: 480103981056", "size: 513", "10 disks[0].size: 513 is not the size of a disk"),
        ("size: 480103981056", "size:", "10 disks[0].size: is missing"),
        ("machine: rack-a", "machine: rack-z", "7 disks[0].machine: there is no machine rack-z"),
        ("member: b\n  - machine", "member: a\n  - machine", "14 disks[1].member: main/a is there twice"),
        ("etcdCluster: events", "etcdCluster: main", "20 disks[2].member: main/b is there twice"),
        ("machine: rack-a", "machine: rack-b", "14 disks[1].machine: a member of main on rack-b is there twice"),
        ("blank: true", "blank: sure", "13 disks[0].blank: wants true or false"),
        ("serial: S2", 'serial: "S 2/../x"', "7 disks[0].id: 'S 2/../x' cannot be an id"),
        ("    member: a\n", "", "7 disks[0].member: is missing"),
        ("machines:", "machine:", "1 machine: there is no such field"),
        ("machines:", "machine:", "1 machines: wants a list that is not empty"),
        ("  - machine: rack-a\n", "  - text\n  - machine: rack-a\n", "7 disks[0]: wants a mapping"),
        ("disks:", "---\ndisks:", "1: there are 2 documents"),
        ("disks:", "\tdisks:", "not valid YAML"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(path: Path, old: str, new: str, expected: str) -> None:
    assert old in GOOD

    found = problems(path, GOOD.replace(old, new, 1))

    assert any(expected in problem for problem in found), found


def test_everything_that_is_wrong_is_said_at_once(path: Path) -> None:
    found = problems(path, GOOD.replace("10.0.0.12", "x").replace("100Gi", "100G").replace("blank: true", "blank: 1"))

    assert [problem.split(" ", 1)[0] for problem in found] == ["4", "13", "17"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(GOOD.splitlines()), st.sampled_from(["", "  ", "    ", "- ", "x: ", "[", "{", "&a ", "*a "])
        ),
        max_size=25,
    )
)
@examples(80, database=None)
def test_whatever_the_file_says_it_is_read_or_its_problems_are_told(lines: list[tuple[str, str]]) -> None:
    text = "\n".join(before + line for line, before in lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inventory.yaml"
        path.write_text(text)
        result = outcome(path)

    if isinstance(result, Inventory):
        assert result.machines
        assert result.disks
    else:
        assert result.problems
        assert all(str(problem) for problem in result.problems)


def outcome(path: Path) -> Inventory | InvalidInventory:
    try:
        return read_inventory(path)
    except InvalidInventory as error:
        return error


def test_the_error_shows_file_and_lines(path: Path) -> None:
    path.write_text("machines: []\ndisks: []\n")

    with pytest.raises(InvalidInventory) as caught:
        read_inventory(path)

    assert str(caught.value).splitlines() == [
        f"2 problems in the inventory {path}",
        f"  {path}:1 machines: wants a list that is not empty",
        f"  {path}:2 disks: wants a list that is not empty",
    ]


def test_a_file_that_is_not_there_or_not_text_is_said_so(path: Path) -> None:
    with pytest.raises(InvalidInventory, match="cannot be read"):
        read_inventory(path)

    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInventory, match="1 problem in the inventory"):
        read_inventory(path)
