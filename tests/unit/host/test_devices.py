"""A volume is found by what it is, whatever the kernel, udev or a cloud call it."""

from __future__ import annotations

from pathlib import Path

import pytest

from protokube.host import Block, Device
from protokube.host.devices import Devices, block_number

GIB = 1 << 30


class Machine:
    """The device files and the sysfs of a machine, below a folder; numbers are passed in: mknod needs root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.numbers: dict[Path, tuple[int, int]] = {}
        (root / "dev").mkdir()
        (root / "sys/dev/block").mkdir(parents=True)

    @property
    def devices(self) -> Devices:
        return Devices(root=self.root, number_of=self.numbers.get)

    def disk(self, name: str, number: tuple[int, int], size: int = GIB, *, node: bool = True, **files: str) -> None:
        self.add(name, number, size, node, files)

    def add(self, name: str, number: tuple[int, int], size: int, node: bool, files: dict[str, str]) -> None:
        folder = self.root / "sys/dev/block" / f"{number[0]}:{number[1]}"
        folder.mkdir()
        (folder / "size").write_text(f"{size // 512}\n")
        (folder / "uevent").write_text(f"MAJOR={number[0]}\nMINOR={number[1]}\nDEVNAME={name}\nDEVTYPE=disk\n")
        for path, text in files.items():
            place = folder / path.replace("__", "/")
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(text.encode("latin-1"))
        if node:
            self.node(name, number)

    def node(self, name: str, number: tuple[int, int]) -> None:
        place = self.root / "dev" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
        self.numbers[place] = number

    def link(self, name: str, target: str) -> None:
        place = self.root / "dev" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    def find(self, path: str, serial: str | None = None) -> Block | None:
        return self.devices.find(Device(path=Path(path), serial=serial))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    root = tmp_path / "rootfs"
    root.mkdir()
    return Machine(root)


@pytest.fixture
def nitro(machine: Machine) -> Machine:
    """A machine as AWS makes them now: the volume was attached as /dev/xvdu, the kernel calls it nvme1n1."""
    machine.disk("nvme0n1", (259, 0), 8 * GIB, device__serial="vol0root  \n")
    machine.disk("nvme1n1", (259, 1), device__serial="vol0etcd\n")
    machine.disk("nvme1n1p1", (259, 2), GIB // 2, partition="1\n")
    machine.link("disk/by-id/nvme-Amazon_vol0etcd", "../../nvme1n1")
    machine.link("disk/by-id/absolute", "/dev/nvme1n1")
    machine.link("xvdu", "nvme1n1")
    machine.link("sdu", "xvdu")
    machine.link("disk/by-path/to-the-link", "../../../dev/disk/by-id/nvme-Amazon_vol0etcd")
    return machine


NITRO = [
    "/dev/nvme1n1",
    "/dev/xvdu",
    "/dev/sdu",
    "/dev/disk/by-id/nvme-Amazon_vol0etcd",
    "/dev/disk/by-id/absolute",
    "/dev/disk/by-path/to-the-link",
    "/dev/../dev/./xvdu",
    "/../dev/xvdu",
]


@pytest.mark.parametrize("serial", [None, "vol0etcd"])
@pytest.mark.parametrize("path", NITRO)
def test_every_name_of_a_volume_leads_to_one_device(nitro: Machine, path: str, serial: str | None) -> None:
    found = nitro.find(path, serial)

    assert found == Block(path=nitro.root / "dev/nvme1n1", number=(259, 1), size=GIB, serial="vol0etcd")


@pytest.mark.parametrize("path", NITRO)
def test_a_path_that_already_carries_the_root_means_the_same(nitro: Machine, path: str) -> None:
    found = nitro.find(f"{nitro.root}{path}")

    assert found is not None
    assert found.number == (259, 1)


def test_a_device_without_its_name_is_found_by_its_serial(machine: Machine) -> None:
    """What users saw: attached as /dev/xvdu, and no such device ever appears."""
    machine.disk("nvme0n1", (259, 0), device__serial="vol0root")
    machine.disk("nvme1n1", (259, 1), device__serial="vol0etcd")

    found = machine.find("/dev/xvdu", "vol0etcd")

    assert found is not None
    assert found.path == machine.root / "dev/nvme1n1"


def test_a_name_that_belongs_to_another_volume_does_not_win_over_the_serial(machine: Machine) -> None:
    machine.disk("nvme1n1", (259, 1), device__serial="vol0other")
    machine.disk("nvme2n1", (259, 2), device__serial="vol0etcd")

    found = machine.find("/dev/nvme1n1", "vol0etcd")

    assert found is not None
    assert (found.number, found.serial) == ((259, 2), "vol0etcd")


def test_a_wrong_serial_is_reported_when_the_right_one_is_nowhere(machine: Machine) -> None:
    machine.disk("nvme1n1", (259, 1), device__serial="vol0other")

    found = machine.find("/dev/nvme1n1", "vol0etcd")

    assert found is not None
    assert found.serial == "vol0other"


def test_two_disks_with_one_serial_are_not_chosen_between(machine: Machine) -> None:
    machine.disk("sda", (8, 0), device__wwid="naa.5000")
    machine.disk("sdb", (8, 16), device__wwid="naa.5000")

    assert machine.find("/dev/mapper/missing", "naa.5000") is None


def test_a_disk_with_the_right_serial_but_no_node_is_not_there(machine: Machine) -> None:
    machine.disk("nvme1n1", (259, 1), node=False, device__serial="vol0etcd")

    assert machine.find("/dev/xvdu", "vol0etcd") is None


def test_a_node_that_was_left_over_by_another_device_is_not_the_disk(machine: Machine) -> None:
    machine.disk("nvme1n1", (259, 1), node=False, device__serial="vol0etcd")
    machine.node("nvme1n1", (259, 7))

    assert machine.find("/dev/xvdu", "vol0etcd") is None


def test_a_partition_is_not_the_disk_and_has_no_serial(nitro: Machine) -> None:
    found = nitro.find("/dev/nvme1n1p1")

    assert found is not None
    assert (found.number, found.size, found.serial) == ((259, 2), GIB // 2, None)


def test_a_partition_given_with_the_serial_of_its_disk_leads_to_the_disk(nitro: Machine) -> None:
    found = nitro.find("/dev/nvme1n1p1", "vol0etcd")

    assert found is not None
    assert found.number == (259, 1)


@pytest.mark.parametrize(
    ("files", "serial"),
    [
        ({"serial": "virtio-serial\n"}, "virtio-serial"),
        ({"device__serial": "  vol0abc  \n"}, "vol0abc"),
        ({"device__vpd_pg80": "\x00\x80\x00\x08scsi-one"}, "scsi-one"),
        ({"wwid": "eui.0025\n", "device__serial": "S4EV\n"}, "S4EV"),
        ({"wwid": "nvme.1d0f\n"}, "nvme.1d0f"),
        ({"device__wwid": "t10.Google  PersistentDisk  etcd-a\n"}, "t10.Google  PersistentDisk  etcd-a"),
        ({"loop__backing_file": "/var/lib/cloud/vol-1.img\n"}, "vol-1"),
        ({"loop__backing_file": "/var/lib/cloud/vol-1.img (deleted)\n"}, "vol-1"),
        ({"loop__backing_file": "/var/lib/cloud/vol-1 (deleted)\n"}, "vol-1"),
        ({"serial": "\n"}, None),
        ({}, None),
    ],
)
def test_the_serial_is_where_this_kind_of_disk_keeps_it(
    machine: Machine, files: dict[str, str], serial: str | None
) -> None:
    machine.add("disk", (8, 0), GIB, True, files)

    found = machine.find("/dev/disk")

    assert found is not None
    assert found.serial == serial


def test_a_device_with_nothing_behind_it_is_not_there(machine: Machine) -> None:
    machine.disk("loop3", (7, 3), size=0)

    assert machine.find("/dev/loop3") is None


def test_a_device_that_sysfs_does_not_know_is_not_there(machine: Machine) -> None:
    machine.node("xvdu", (202, 20))

    assert machine.find("/dev/xvdu") is None


def test_a_missing_path_and_a_link_to_nowhere_are_not_there(machine: Machine) -> None:
    machine.link("xvdu", "nvme9n1")

    assert machine.find("/dev/xvdv") is None
    assert machine.find("/dev/xvdu") is None


def test_links_in_a_circle_are_not_there(machine: Machine) -> None:
    machine.link("one", "two")
    machine.link("two", "one")

    assert machine.find("/dev/one") is None


def test_a_name_with_a_folder_in_it_is_found_by_serial(machine: Machine) -> None:
    machine.disk("cciss/c0d0", (104, 0), serial="raid-1")

    found = machine.find("/dev/xvdu", "raid-1")

    assert found is not None
    assert found.path == machine.root / "dev/cciss/c0d0"


def test_a_machine_without_sysfs_has_no_disks(tmp_path: Path) -> None:
    assert Devices(root=tmp_path).find(Device(path=Path("/dev/xvdu"), serial="vol0etcd")) is None


def test_only_block_devices_have_a_number(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert block_number(tmp_path / "file") is None
    assert block_number(tmp_path / "missing") is None
    assert block_number(Path("/dev/null")) is None
