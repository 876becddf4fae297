"""Whether a mounted file system takes writes, on a real kernel: what a broken one shows, and what a check mends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from clusters.broken_disks import shut_down
from clusters.disks import MIB, UUID, an_image, attached, done_here, in_memory, own_mounts, run, settle
from protokube.host import Block, Done, Failed, Mount, MountVolume, Unmount, Unwritable, WriteTest
from protokube.host.child.writing import FILE
from protokube.host.disks import HostDisks
from protokube.host.files import write_atomic
from protokube.host.mounts import mounts
from protokube.members.diskfaults import Signs, Writing, fault_in

SIZE = 32 * MIB


@pytest.fixture(scope="module", autouse=True)
def apart() -> Iterator[None]:
    with own_mounts():
        yield


@pytest.fixture
def disks() -> Iterator[HostDisks]:
    made = HostDisks()
    yield made
    made.close()


@pytest.fixture
def block() -> Iterator[Block]:
    with in_memory() as folder:
        image = an_image(folder, size=SIZE)
        run("mkfs.ext4", "-q", "-F", "-U", UUID, image)
        with attached(image) as made:
            yield made


@pytest.fixture
def mount(block: Block, disks: HostDisks, tmp_path: Path) -> Iterator[Mount]:
    point = tmp_path / "mnt"
    assert settle(disks, MountVolume(block=block, point=point)) == Done()
    yield shown(point)
    while any(each.point == point for each in mounts()):
        run("umount", "--lazy", point)


def shown(point: Path) -> Mount:
    return next(each for each in mounts() if each.point == point)


def a_test(mount: Mount) -> WriteTest:
    return WriteTest(point=mount.point, number=mount.number, begun=0.0)


def mounted_anew(disks: HostDisks, block: Block, point: Path) -> Mount:
    assert settle(disks, Unmount(point=point, number=block.number)) == Done()
    assert settle(disks, MountVolume(block=block, point=point)) == Done()
    return shown(point)


def break_it(point: Path, way: str) -> None:
    if way == "shutdown":
        shut_down(point)
    else:
        run("mount", "-o", f"remount,{way}", point)


def fill(file: Path, piece: int) -> None:
    with suppress(OSError), file.open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(piece))


def test_a_sound_file_system_takes_a_write_and_shows_no_fault(disks: HostDisks, mount: Mount) -> None:
    assert settle(disks, a_test(mount)) == Done()
    assert settle(disks, a_test(mount)) == Done(), "also when its file is there already"
    system = disks.file_system(mount)
    assert system.errors == 0
    assert 0 < system.free < system.size < SIZE
    assert fault_in(Signs(options=mount.options, errors=system.errors)) == ""
    assert (mount.point / FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("way", ["ro", "abort", "shutdown"])
def test_a_broken_file_system_fails_the_write_and_shows_it_and_is_sound_again_when_mounted_anew(
    disks: HostDisks, block: Block, mount: Mount, way: str
) -> None:
    write_atomic(mount.point / "data", b"kept")
    assert settle(disks, a_test(mount)) == Done()

    break_it(mount.point, way)

    result = done_here(a_test(mount))
    assert isinstance(result, Unwritable)
    assert not result.full
    assert fault_in(Signs(options=(), writing=Writing.FAILED, detail=result.why)).startswith("cannot be written: ")
    now = shown(mount.point)
    assert fault_in(Signs(options=now.options, errors=disks.file_system(now).errors)), "this kernel shows it as well"
    anew = mounted_anew(disks, block, mount.point)
    assert settle(disks, a_test(anew)) == Done()
    assert fault_in(Signs(options=anew.options, errors=disks.file_system(anew).errors)) == ""
    assert (mount.point / "data").read_text() == "kept"


def test_errors_that_ext4_counted_are_gone_after_a_check(disks: HostDisks, block: Block, mount: Mount) -> None:
    name = Path(f"/sys/dev/block/{block.number[0]}:{block.number[1]}").resolve().name
    Path(f"/sys/fs/ext4/{name}/trigger_fs_error").write_text("1")

    assert disks.file_system(mount).errors == 1

    assert disks.file_system(mounted_anew(disks, block, mount.point)).errors == 0


def test_a_file_system_without_a_free_block_is_full_and_not_broken(disks: HostDisks, mount: Mount) -> None:
    fill(mount.point / "filler", MIB)
    fill(mount.point / "rest", 1024)

    assert disks.file_system(mount).free < MIB
    assert isinstance(result := settle(disks, a_test(mount)), Done | Unwritable)
    assert not isinstance(result, Unwritable) or result.full


def test_a_test_whose_file_exists_needs_no_room(disks: HostDisks, mount: Mount) -> None:
    assert settle(disks, a_test(mount)) == Done()
    fill(mount.point / "filler", MIB)

    assert settle(disks, a_test(mount)) == Done()


def test_nothing_is_written_where_another_device_is_mounted(disks: HostDisks, mount: Mount) -> None:
    other = WriteTest(point=mount.point, number=(7, 4095), begun=0.0)

    result = settle(disks, other)

    assert isinstance(result, Failed)
    assert "is not mounted at" in result.why
    assert not (mount.point / FILE).exists()


def test_a_link_in_the_place_of_the_test_file_is_not_followed(disks: HostDisks, mount: Mount, tmp_path: Path) -> None:
    (mount.point / FILE).symlink_to(tmp_path / "elsewhere")

    assert isinstance(settle(disks, a_test(mount)), Unwritable)

    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (("clri <2>", "ssv state 2"), "e2fsck could not mend"),
        (("clri <2>",), "Structure needs cleaning"),
    ],
    ids=["errors that e2fsck leaves", "errors that only the kernel sees"],
)
def test_damage_that_only_a_person_may_mend_is_named_so_and_nothing_is_mounted(
    disks: HostDisks, block: Block, tmp_path: Path, damage: tuple[str, ...], words: str
) -> None:
    for command in damage:
        run("debugfs", "-w", "-R", command, block.path)
    point = tmp_path / "mnt"

    result = settle(disks, MountVolume(block=block, point=point))

    assert isinstance(result, Failed)
    assert result.damaged
    assert words in result.why
    assert not any(each.point == point for each in mounts())
