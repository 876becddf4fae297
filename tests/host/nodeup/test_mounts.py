"""Disks are mounted by real systemd: loop devices with content that must survive, and blank ones."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clusters.machines.machine import SystemdMachine
from clusters.machines.tasks import Done
from protokube.nodeup.values import Mount

IDENTITY = "0f9a0e0c-0000-4000-8000-00000000000a"
Attach = Callable[[str], Path]


@pytest.fixture(scope="module")
def machine() -> Iterator[SystemdMachine]:
    made = SystemdMachine("mounts")
    made.copy_protokube()
    yield made
    made.close()


@pytest.fixture
def attach(machine: SystemdMachine, tmp_path: Path) -> Iterator[Attach]:
    """Make a blank disk, show it to the machine as /dev/NAME, and return its image."""
    devices: list[str] = []

    def made(name: str) -> Path:
        image = tmp_path / f"{name}.img"
        with image.open("wb") as file:
            file.truncate(64 << 20)
        found = machine.keeper.run("losetup", "--find", "--show", str(image)).strip()
        devices.append(found)
        machine.attach(Path(found), name)
        return image

    yield made
    for device in devices:
        machine.keeper.run("losetup", "--detach", device)  # it goes with its last user, the machine


def carry_out(machine: SystemdMachine, wanted: Mount) -> Done:
    return machine.start(wanted).one()


def digest(image: Path) -> str:
    return hashlib.sha256(image.read_bytes()).hexdigest()


def mkfs(machine: SystemdMachine, name: str, *words: str) -> None:
    machine.run("mkfs.ext4", "-q", "-F", *words, f"/dev/{name}")
    machine.run("sync")


def test_a_blank_disk_is_formatted_once_and_mounted_at_each_boot(machine: SystemdMachine, attach: Attach) -> None:
    attach("blank")
    wanted = Mount(device="/dev/blank", path="/data/with spaces-and-dashes", format=True)

    first = carry_out(machine, wanted)
    machine.run("touch", "/data/with spaces-and-dashes/mine")
    again = carry_out(machine, wanted)

    assert first.well, first
    assert first.changes[0] == "file system: none -> ext4"
    assert again.changes == []
    unit = "data-with\\x20spaces\\x2dand\\x2ddashes.mount"
    assert machine.run("systemctl", "is-enabled", unit) == "enabled"
    machine.run("systemctl", "stop", unit)
    assert carry_out(machine, wanted).well
    assert machine.run("ls", "/data/with spaces-and-dashes").split() == ["lost+found", "mine"]
    other = Mount(device=wanted.device, path=wanted.path, options=("noatime",))
    pid = machine.run("sh", "-c", "sleep 1000 > '/data/with spaces-and-dashes/open' 2>&1 & echo $!")
    assert carry_out(machine, other).well  # from the next boot on: it is in use
    assert carry_out(machine, other).changes == []
    machine.run("kill", pid)
    machine.run("systemctl", "stop", unit)


def test_a_disk_with_the_wanted_file_system_is_mounted_as_it_is(machine: SystemdMachine, attach: Attach) -> None:
    attach("used")
    mkfs(machine, "used", "-U", IDENTITY)

    done = carry_out(machine, Mount(device="/dev/used", path="/used", format=True))

    assert done.well, done
    assert machine.run("blkid", "-o", "value", "-s", "UUID", "-p", "/dev/used") == IDENTITY
    machine.run("systemctl", "stop", "used.mount")


def test_a_blank_disk_that_nobody_wants_formatted_is_refused(machine: SystemdMachine, attach: Attach) -> None:
    image = attach("unasked")
    before = digest(image)

    done = carry_out(machine, Mount(device="/dev/unasked", path="/unasked"))

    assert done.kind == "Refused"
    assert done.error.splitlines()[0] == "/dev/unasked has no file system"
    assert digest(image) == before


@pytest.mark.parametrize(
    ("name", "position", "content"),
    [("middle", 33_000_001, b"x"), ("tail", (64 << 20) - 1, b"\1"), ("table", 510, b"\x55\xaa")],
)
def test_a_disk_with_anything_on_it_is_refused_and_not_touched(
    machine: SystemdMachine, attach: Attach, name: str, position: int, content: bytes
) -> None:
    image = attach(name)
    with image.open("r+b") as file:
        file.seek(position)
        file.write(content)
    before = digest(image)

    done = carry_out(machine, Mount(device=f"/dev/{name}", path=f"/{name}", format=True))

    assert done.kind == "Refused"
    assert done.error.startswith(f"refusing to touch /dev/{name}: it is not what /{name} needs")
    assert digest(image) == before
    assert not (machine.files / f"etc/systemd/system/{name}.mount").exists()


def test_a_disk_with_another_file_system_is_refused_and_shown(machine: SystemdMachine, attach: Attach) -> None:
    image = attach("swapped")
    subprocess.run(["mkswap", "--label", "precious", str(image)], check=True, capture_output=True)
    before = digest(image)

    done = carry_out(machine, Mount(device="/dev/swapped", path="/swapped", format=True))

    assert done.kind == "Refused"
    assert "precious" in done.error
    assert digest(image) == before


def test_a_disk_that_is_mounted_elsewhere_or_open_is_refused(machine: SystemdMachine, attach: Attach) -> None:
    attach("elsewhere")
    mkfs(machine, "elsewhere")
    machine.run("sh", "-c", "mkdir /other && mount /dev/elsewhere /other")

    done = carry_out(machine, Mount(device="/dev/elsewhere", path="/here", format=True))

    assert done.kind == "Refused"
    assert done.error.splitlines()[0] == "/dev/elsewhere is mounted elsewhere"
    machine.run("umount", "/other")


def test_another_disk_at_the_place_is_refused(machine: SystemdMachine, attach: Attach) -> None:
    attach("first")
    attach("second")
    mkfs(machine, "first")
    mkfs(machine, "second")
    assert carry_out(machine, Mount(device="/dev/first", path="/place")).well

    done = carry_out(machine, Mount(device="/dev/second", path="/place"))

    assert done.kind == "Refused"
    assert done.error.splitlines()[0] == "another file system is mounted at /place"
    machine.run("systemctl", "stop", "place.mount")


def test_files_are_never_hidden_by_a_mount(machine: SystemdMachine, attach: Attach) -> None:
    attach("hiding")
    mkfs(machine, "hiding")
    machine.run("sh", "-c", "mkdir /full && echo mine > /full/file")

    done = carry_out(machine, Mount(device="/dev/hiding", path="/full"))

    assert done.kind == "Refused"
    assert done.error.splitlines()[0] == "mounting /dev/hiding at /full would hide the files that are there"


def test_a_disk_that_is_not_there_is_for_later(machine: SystemdMachine) -> None:
    done = carry_out(machine, Mount(device="/dev/disk/by-id/absent", path="/absent"))

    assert done.kind == "TryLater"
    assert done.error.splitlines()[0] == "there is no disk /dev/disk/by-id/absent for /absent"
