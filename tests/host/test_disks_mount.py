"""Mounting and unmounting on a real kernel: checked first, at one place only, and gone everywhere afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from builders import signatures as signs
from clusters.disks import (
    MIB,
    OTHER_UUID,
    UUID,
    an_image,
    attached,
    digest,
    done_here,
    in_memory,
    own_mounts,
    patch,
    run,
    settle,
    wait_until,
)
from protokube.host import Block, Device, Done, Failed, Format, MountVolume, Unmount
from protokube.host.disks import HostDisks
from protokube.host.mounts import mounts, shown_anywhere

SIZE = 32 * MIB


@pytest.fixture(scope="module", autouse=True)
def apart() -> Iterator[None]:
    with own_mounts():
        yield


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with in_memory() as folder:
        yield folder


@pytest.fixture
def disks() -> Iterator[HostDisks]:
    made = HostDisks()
    yield made
    made.close()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    made = an_image(tmp_path, size=SIZE)
    run("mkfs.ext4", "-q", "-F", "-U", UUID, made)
    return made


@pytest.fixture
def point(tmp_path: Path) -> Iterator[Path]:
    """A place to mount at; whatever a test leaves there is taken away."""
    place = tmp_path / "mnt" / "master-vol-1"
    yield place
    while any(mount.point == place for mount in mounts()):
        run("umount", "--lazy", place)


@pytest.fixture
def block(image: Path) -> Iterator[Block]:
    with attached(image) as made:
        yield made


def why(result: object) -> str:
    assert isinstance(result, Failed), result
    return result.why


def places(block: Block) -> list[Path]:
    return [mount.point for mount in mounts() if mount.number == block.number]


def test_a_volume_is_mounted_and_unmounted(block: Block, point: Path, disks: HostDisks) -> None:
    assert settle(disks, MountVolume(block=block, point=point)) == Done()
    assert places(block) == [point]
    (point / "identity").write_text("main/a")

    assert settle(disks, Unmount(point=point, number=block.number)) == Done()
    assert places(block) == []
    assert shown_anywhere(block.number) == []

    assert settle(disks, MountVolume(block=block, point=point)) == Done()
    assert (point / "identity").read_text() == "main/a"
    assert done_here(Unmount(point=point, number=block.number)) == Done()


def test_a_volume_that_we_formatted_can_be_mounted(tmp_path: Path, point: Path, disks: HostDisks) -> None:
    with attached(an_image(tmp_path, "new.img")) as block:
        assert settle(disks, Format(block=block, uuid=UUID)) == Done()
        assert settle(disks, MountVolume(block=block, point=point)) == Done()
        (point / "file").write_bytes(os.urandom(MIB))
        assert point.stat().st_mode & 0o777 == 0o755
        assert {each.name for each in point.iterdir()} == {"lost+found", "file"}

        assert done_here(Unmount(point=point, number=block.number)) == Done()
        run("e2fsck", "-fn", block.path)


def test_the_point_is_made_and_the_options_are_ours(block: Block, point: Path) -> None:
    assert done_here(MountVolume(block=block, point=point)) == Done()

    (mount,) = [each for each in mounts() if each.point == point]
    assert mount.type == "ext4"
    assert {"noatime", "nodev", "nosuid", "errors=remount-ro", "rw"} <= mount.options
    assert done_here(Unmount(point=point, number=block.number)) == Done()


def test_mounting_what_is_mounted_there_already_is_done(block: Block, point: Path) -> None:
    job = MountVolume(block=block, point=point)
    assert done_here(job) == Done()

    assert done_here(job) == Done()

    assert places(block) == [point]
    done_here(Unmount(point=point, number=block.number))


def test_a_point_behind_a_link_is_the_place_it_leads_to(block: Block, point: Path, tmp_path: Path) -> None:
    point.parent.mkdir()
    (tmp_path / "link").symlink_to(point.parent)
    job = MountVolume(block=block, point=tmp_path / "link" / point.name)

    assert done_here(job) == Done()
    assert done_here(job) == Done()
    assert places(block) == [point]
    assert done_here(Unmount(point=tmp_path / "link" / point.name, number=block.number)) == Done()


def test_a_volume_that_is_mounted_elsewhere_is_not_mounted_again(block: Block, point: Path, tmp_path: Path) -> None:
    elsewhere = point.with_name("elsewhere")
    assert done_here(MountVolume(block=block, point=elsewhere)) == Done()
    try:
        found = done_here(MountVolume(block=block, point=point))
    finally:
        done_here(Unmount(point=elsewhere, number=block.number))

    assert found == Failed(f"{block.path} is mounted already, at {elsewhere}")
    assert not point.exists()


def test_a_point_that_another_device_has_is_left_alone(block: Block, point: Path, tmp_path: Path) -> None:
    other = an_image(tmp_path, "vol-2.img", size=SIZE)
    run("mkfs.ext4", "-q", "-F", "-U", OTHER_UUID, other)
    with attached(other) as second:
        assert done_here(MountVolume(block=second, point=point)) == Done()
        try:
            mounting = done_here(MountVolume(block=block, point=point))
            unmounting = done_here(Unmount(point=point, number=block.number))

            assert places(second) == [point]
        finally:
            done_here(Unmount(point=point, number=second.number))

    assert f"another device is mounted at {point}" in why(mounting)
    assert unmounting == Done()  # our device is mounted nowhere, and that is what was asked for
    assert places(block) == []


@contextmanager
def another_namespace(script: str) -> Iterator[subprocess.Popen[str]]:
    """A shell in a mount namespace of its own, which has done what it was told and waits."""
    enter = ["unshare", "--mount", "--propagation=private", "sh", "-c", f"{script}; echo ready; read line"]
    with subprocess.Popen(enter, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_a_volume_that_is_mounted_in_another_namespace_is_not_mounted_here(block: Block, point: Path) -> None:
    """The kernel would allow it, and two machines that share a kernel would share the disk."""
    point.mkdir(parents=True)
    with another_namespace(f"mount {block.path} {point}") as process:
        found = done_here(MountVolume(block=block, point=point))

    assert found == Failed(f"{block.path} is mounted in the mount namespace of process {process.pid}")
    assert places(block) == []


def test_unmounting_is_not_done_while_another_namespace_shows_the_device(block: Block, point: Path) -> None:
    """What was seen here: a namespace made after the mount keeps a copy of it."""
    done_here(MountVolume(block=block, point=point))
    with another_namespace("true") as process:
        first = done_here(Unmount(point=point, number=block.number))
        assert places(block) == []

    assert "is still mounted in the mount namespace of process" in why(first)
    assert str(process.pid) in why(first)
    assert done_here(Unmount(point=point, number=block.number)) == Done()


def unmount_while_a_namespace_goes(block: Block, point: Path, disks: HostDisks) -> bool:
    """Whether one request was enough, although a process that had a copy of the mount died only after it."""
    assert done_here(MountVolume(block=block, point=point)) == Done()
    job = Unmount(point=point, number=block.number)
    with another_namespace("true"):
        assert disks.run(job) is None
        wait_until(lambda: not places(block), "it is not unmounted")
        time.sleep(0.3)
    result = settle(disks, job)
    assert done_here(job) == Done()
    return result == Done()


def test_unmounting_waits_a_moment_for_a_namespace_that_is_about_to_go(
    block: Block, point: Path, disks: HostDisks
) -> None:
    """On a machine that is busy with other tests the moment can be too short."""
    assert any(unmount_while_a_namespace_goes(block, point, disks) for _ in range(5))


def test_unmounting_is_not_done_while_a_second_place_shows_the_device(block: Block, point: Path) -> None:
    second = point.with_name("second")
    done_here(MountVolume(block=block, point=point))
    second.mkdir()
    run("mount", "--bind", point, second)
    try:
        found = done_here(Unmount(point=point, number=block.number))
    finally:
        run("umount", second)

    assert why(found).endswith(f"is still mounted at {second}")


def test_unmounting_is_not_done_while_the_kernel_still_uses_the_device(block: Block, point: Path) -> None:
    """Detached from every table, but a file on it is open: it can still be written to."""
    done_here(MountVolume(block=block, point=point))
    second = point.with_name("second")
    second.mkdir()
    run("mount", "--bind", point, second)
    with (second / "file").open("wb"):
        run("umount", "--lazy", second)
        found = done_here(Unmount(point=point, number=block.number))

    assert "is in no mount table, but still in use" in why(found)
    assert done_here(Unmount(point=point, number=block.number)) == Done()


def test_a_busy_volume_names_who_holds_it(block: Block, point: Path, disks: HostDisks) -> None:
    done_here(MountVolume(block=block, point=point))
    code = f"import sys; held = open({str(point / 'wal')!r}, 'w'); print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()

        found = settle(disks, Unmount(point=point, number=block.number))

        holder.kill()
    assert isinstance(found, Failed)
    assert f"{point} is in use: " in found.why
    assert f"(pid {holder.pid}) has open {point}/wal" in found.why
    assert done_here(Unmount(point=point, number=block.number)) == Done()


def test_two_mounts_on_top_of_each_other_are_both_taken_away(block: Block, point: Path) -> None:
    done_here(MountVolume(block=block, point=point))
    run("mount", "--bind", point, point)
    assert places(block) == [point, point]

    assert done_here(Unmount(point=point, number=block.number)) == Done()

    assert places(block) == []


def test_unmounting_what_is_gone_is_done(point: Path) -> None:
    assert done_here(Unmount(point=point, number=(7, 99999))) == Done()


def test_a_device_that_was_taken_away_under_the_mount_is_unmounted(image: Path, point: Path) -> None:
    with attached(image) as block:
        done_here(MountVolume(block=block, point=point))
        run("losetup", "--detach", block.path)  # it goes with its last user

        assert done_here(Unmount(point=point, number=block.number)) == Done()

    assert places(block) == []


def not_there(image: Path) -> None:
    patch(image, {0: bytes(SIZE)})


def xfs_over_ext4(image: Path) -> None:
    patch(image, {1024: bytes(1024), **signs.xfs(SIZE)})


CANNOT_BE_MOUNTED: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (not_there, "is dirty: no signature"),
    "an xfs where an ext4 was": (xfs_over_ext4, 'is foreign: an xfs file system labelled "pgdata"'),
    "a superblock that was changed": (
        lambda image: patch(image, {1024 + 0x78: b"x"}),
        'is foreign: an ext4 file system labelled "x" whose checksum is wrong',
    ),
}


@pytest.mark.parametrize("name", CANNOT_BE_MOUNTED)
def test_what_is_not_one_whole_ext4_is_neither_mounted_nor_mended(image: Path, point: Path, name: str) -> None:
    """e2fsck would find the copy of the superblock, and mend the old file system over the new one."""
    make, told = CANNOT_BE_MOUNTED[name]
    make(image)
    before = digest(image)

    with attached(image) as block:
        found = done_here(MountVolume(block=block, point=point))

    assert told in why(found)
    assert not point.exists()
    assert digest(image) == before


def test_a_small_damage_is_mended_and_the_volume_is_mounted(image: Path, point: Path) -> None:
    """As after a power cut: not cleanly unmounted, and the free blocks are miscounted."""
    run("debugfs", "-w", "-R", "set_super_value free_blocks_count 17", image)
    run("debugfs", "-w", "-R", "set_super_value state 0", image)

    with attached(image) as block:
        assert done_here(MountVolume(block=block, point=point)) == Done()
        assert done_here(Unmount(point=point, number=block.number)) == Done()
        run("e2fsck", "-fn", block.path)


def test_a_damage_that_only_a_person_can_mend_is_told(image: Path, point: Path) -> None:
    run("debugfs", "-w", "-R", "clri <2>", image)
    run("debugfs", "-w", "-R", "set_super_value state 2", image)

    with attached(image) as block:
        found = done_here(MountVolume(block=block, point=point))

    assert why(found).startswith(f"e2fsck could not mend {block.path} by itself, it ended with 4: ")
    assert "UNEXPECTED INCONSISTENCY; RUN fsck MANUALLY" in why(found)
    assert places(block) == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [({"size": 512}, "bytes now, it had 512"), ({"serial": "vol-2"}, "has the serial vol-1 now, it had vol-2")],
)
def test_a_device_that_is_not_the_one_that_was_found_is_not_mounted(
    block: Block, point: Path, wrong: dict[str, object], told: str
) -> None:
    other = replace(block, **wrong)  # type: ignore[arg-type]

    assert told in why(done_here(MountVolume(block=other, point=point)))


def test_a_mount_whose_agent_is_gone_is_not_made(block: Block, point: Path) -> None:
    found = done_here(MountVolume(block=block, point=point), parent=os.getpid())

    assert found == Failed("the agent that requested the mount is gone")
    assert places(block) == []


def test_a_point_that_cannot_be_made_is_told(block: Block, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    found = done_here(MountVolume(block=block, point=tmp_path / "file" / "point"))

    assert "Not a directory" in why(found)
    assert places(block) == []


def test_a_loop_device_is_found_by_its_backing_file(block: Block, image: Path, disks: HostDisks) -> None:
    found = disks.find(Device(path=Path("/dev/not-there"), serial=None))
    assert found is None
    assert disks.find(Device(path=block.path, serial="vol-1")) == block
    assert (block.size, block.serial) == (SIZE, "vol-1")


def test_no_node_of_ours_is_left_in_dev(block: Block, point: Path) -> None:
    done_here(MountVolume(block=block, point=point))
    done_here(Unmount(point=point, number=block.number))

    assert not list(Path("/dev").glob(f".protokube-{os.getpid()}*"))
