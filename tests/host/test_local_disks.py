"""Real loop devices, ext4 and mount namespaces: what a disk taken from a host can and cannot see any more."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from builders.volumes import SIZE, Holder, check_file_system, format_disk, nothing_left_behind
from protokube.errors import InvalidRequest, TryLater
from protokube.local.disk import disks, loops, mounts


@pytest.fixture
def image(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disks" / "vol-0badcafe.img"
    path.parent.mkdir()
    disks.create(path, SIZE)
    with nothing_left_behind(tmp_path):
        yield path


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def a_holder(stack: ExitStack) -> Holder:
    holder = Holder()
    stack.callback(holder.end)
    return holder


def attached(image: Path) -> Path:
    return Path(f"/dev/loop{disks.attach(image, SIZE)[1]}")


def formatted(image: Path) -> Path:
    device = attached(image)
    format_disk(device)
    return device


def mounted(image: Path, holder: Holder, at: Path) -> Path:
    """The disk, formatted and mounted in the holder's namespace only."""
    device = formatted(image)
    at.mkdir()
    assert holder.do("mount", str(device), str(at)) == "ok"
    return device


def test_a_disk_has_exactly_its_size_and_takes_no_space(image: Path) -> None:
    device = attached(image)

    with device.open("rb") as opened:
        assert opened.seek(0, os.SEEK_END) == SIZE
    assert image.stat().st_blocks == 0


def test_a_device_says_which_volume_it_shows(image: Path) -> None:
    minor = os.minor(attached(image).stat().st_rdev)

    backing = Path(f"/sys/dev/block/7:{minor}/loop/backing_file").read_text().strip()
    assert Path(backing).stem == "vol-0badcafe"
    assert disks.find(image) == (7, minor)


@pytest.mark.parametrize("size", [0, -4096, 512, SIZE + 1])
def test_a_size_that_no_disk_has_is_refused(tmp_path: Path, size: int) -> None:
    with pytest.raises(InvalidRequest, match="multiple of 4096"):
        disks.create(tmp_path / "new.img", size)

    assert not (tmp_path / "new.img").exists()


def test_a_disk_is_never_made_over_another(image: Path) -> None:
    image.write_bytes(b"data")

    with pytest.raises(FileExistsError):
        disks.create(image, SIZE)

    assert image.read_bytes() == b"data"


def test_a_disk_that_is_bound_is_not_given_to_anybody(image: Path) -> None:
    device = attached(image)

    with pytest.raises(TryLater) as caught:
        disks.attach(image, SIZE)

    assert caught.value.saw == f"bound to {device}"
    assert len(loops.bound(image)) == 1


def test_a_disk_that_anybody_has_mounted_in_any_namespace_is_not_given_away(
    image: Path, tmp_path: Path, stack: ExitStack
) -> None:
    holder = a_holder(stack)
    mounted(image, holder, tmp_path / "m")
    loops.cut(loops.bound(image)[0])  # even one that can do no harm: somebody believes to hold the disk

    with pytest.raises(TryLater) as caught:
        disks.attach(image, SIZE)

    assert f"mounted at {tmp_path}/m for process" in caught.value.saw


def test_a_disk_somebody_bound_by_hand_is_noticed(image: Path) -> None:
    subprocess.run(["losetup", "--find", str(image)], check=True)

    assert len(disks.who_uses(image)) == 1


def test_what_a_dead_host_wrote_is_there_for_the_next_one(image: Path, tmp_path: Path, stack: ExitStack) -> None:
    holder = a_holder(stack)
    mounted(image, holder, tmp_path / "m")
    holder.do("open", "data", f"{tmp_path}/m/data")
    holder.do("write", "data", "acknowledged")
    holder.do("fsync", "data")
    holder.end()

    began = time.monotonic()
    disks.detach(image, patience=10)

    assert time.monotonic() - began < 10
    assert loops.bound(image) == []
    successor = a_holder(stack)
    successor.do("mount", str(attached(image)), str(tmp_path / "m"))
    successor.do("open", "data", f"{tmp_path}/m/data")
    assert successor.do("read_at", "data", 0) == "acknowledged"


def test_a_frozen_holder_can_neither_write_nor_be_acknowledged_after_it_wakes_up(
    image: Path, tmp_path: Path, stack: ExitStack
) -> None:
    old = a_holder(stack)
    device = mounted(image, old, tmp_path / "m")
    for name in ("data", "unsynced", "mapped"):
        old.do("open", name, f"{tmp_path}/m/{name}")
    old.do("write", "data", "acknowledged")
    old.do("fsync", "data")
    old.do("write", "unsynced", "early" * 100_000)
    old.do("map", "mapped", "early")
    old.do("open_device", "raw", str(device))
    old.freeze()

    disks.detach(image, patience=0)

    assert mounts.who_has({(7, os.minor(device.stat().st_rdev))}) == []
    new = a_holder(stack)
    again = attached(image)
    assert again != device
    (tmp_path / "new").mkdir()
    subprocess.run(["e2fsck", "-p", str(again)], capture_output=True)
    assert new.do("mount", str(again), str(tmp_path / "new")) == "ok"
    new.do("open", "mine", f"{tmp_path}/new/mine")
    assert new.do("write", "mine", "successor" * 100_000) == "900000"

    old.thaw()
    assert old.do("write", "data", "ZOMBIE" * 1000) == "EIO"
    assert old.do("fsync", "data") == "EIO"
    assert old.do("fsync", "unsynced") == "EIO"
    assert old.do("flush_map", "mapped") == "EIO"
    assert old.do("write_at", "raw", "ZOMBIE", SIZE // 2) == "ENOSPC"
    assert old.do("write_at", "raw", "ZOMBIE", 0) == "ENOSPC"
    assert old.do("read_at", "raw", 1024) == ""
    assert old.do("write_direct", str(device), 8192) == "ENOSPC"
    os.sync()

    assert new.do("fsync", "mine") == "ok"
    assert new.do("open", "late", f"{tmp_path}/new/data") == "ok"
    assert new.do("read_at", "late", 0) == "acknowledged"
    new.end()
    old.end()
    disks.detach(image, patience=10)
    assert check_file_system(image) == ""
    assert b"ZOMBIE" not in image.read_bytes()
    assert image.read_bytes().count(b"successor") == 100_000
    assert loops.bound(image) == []


def test_cutting_the_device_is_enough_even_if_the_file_system_was_not_shut_down(
    image: Path, tmp_path: Path, stack: ExitStack
) -> None:
    old = a_holder(stack)
    mounted(image, old, tmp_path / "m")
    old.do("open", "data", f"{tmp_path}/m/data")
    old.do("write", "data", "ZOMBIE" * 100_000)

    loops.cut(loops.bound(image)[0])
    before = image.read_bytes()

    assert old.do("fsync", "data") == "EIO"
    old.do("make", f"{tmp_path}/m/folder")  # into the cache, at best
    assert old.do("open", "other", f"{tmp_path}/m/folder/other") != "ok" or old.do("fsync", "other") != "ok"
    os.sync()
    assert image.read_bytes() == before


@pytest.fixture(params=["disk", "memory"])
def anywhere(request: pytest.FixtureRequest, image: Path, stack: ExitStack) -> Path:
    """An image on a file system with files of at most 16 TiB, and one where a file may have any length."""
    if request.param == "disk":
        return image
    folder = Path(stack.enter_context(TemporaryDirectory(dir="/dev/shm")))
    stack.enter_context(nothing_left_behind(folder))
    disks.create(folder / "vol-0badcafe.img", SIZE)
    return folder / "vol-0badcafe.img"


@pytest.mark.parametrize("acknowledged", [1, 2, 4, 8, 16])
def test_of_a_holder_that_runs_while_it_is_cut_off_every_acknowledged_write_is_there_and_none_after(
    anywhere: Path, tmp_path: Path, stack: ExitStack, acknowledged: int
) -> None:
    old = a_holder(stack)
    mounted(anywhere, old, tmp_path / "m")
    old.tell("count", f"{tmp_path}/m/numbers")
    for _ in range(acknowledged):
        old.hear()

    disks.detach(anywhere, patience=0)

    said = list(iter(old.hear, "EIO"))
    last = int(said[-1]) if said else acknowledged - 1
    again = attached(anywhere)
    subprocess.run(["e2fsck", "-p", str(again)], capture_output=True)
    new = a_holder(stack)
    assert new.do("mount", str(again), str(tmp_path / "m")) == "ok"
    new.do("open", "numbers", f"{tmp_path}/m/numbers")
    kept = new.do("read_numbers", "numbers").split()
    assert kept[: last + 1] == [f"{number:08d}" for number in range(last + 1)]
    assert len(kept) <= last + 2  # the one under way may be there, nothing beyond it
    old.end()  # its device stays bound for as long as it has the file open
    new.end()
    disks.detach(anywhere, patience=10)
    assert check_file_system(anywhere) == ""


def test_a_write_that_is_on_its_way_while_the_device_is_cut_is_not_acknowledged(
    image: Path, tmp_path: Path, stack: ExitStack
) -> None:
    old = a_holder(stack)
    mounted(image, old, tmp_path / "m")
    old.tell("count", f"{tmp_path}/m/numbers")
    old.hear()

    loops.cut(loops.bound(image)[0])  # without bringing the file system to rest, as if it could not be reached

    last = int(["0", *iter(old.hear, "EIO")][-1])
    old.end()
    disks.detach(image)
    new = a_holder(stack)
    again = attached(image)
    subprocess.run(["e2fsck", "-p", str(again)], capture_output=True)
    assert new.do("mount", str(again), str(tmp_path / "m")) == "ok"
    new.do("open", "numbers", f"{tmp_path}/m/numbers")
    assert new.do("read_at", "numbers", 8 * last)[:8] == f"{last:08d}"


def test_a_holder_that_has_only_the_device_open_is_cut_off_too(image: Path, stack: ExitStack) -> None:
    old = a_holder(stack)
    device = attached(image)
    old.do("open_device", "raw", str(device))
    old.do("write_at", "raw", "before", 8192)  # in the cache of the device, on its way to the disk
    old.freeze()

    disks.detach(image, patience=0)
    disks.attach(image, SIZE)

    old.thaw()
    assert old.do("write_at", "raw", "ZOMBIE", 8192) == "ENOSPC"
    os.sync()
    assert image.read_bytes()[8192:8198] == b"before"


def test_a_device_that_was_cut_is_as_good_as_new_for_the_next_who_gets_it(
    image: Path, tmp_path: Path, stack: ExitStack
) -> None:
    old = a_holder(stack)
    device = mounted(image, old, tmp_path / "m")
    old.do("open", "data", f"{tmp_path}/m/data")
    old.freeze()
    disks.detach(image, patience=0)
    assert [loop.is_cut for loop in loops.bound(image)] == [True]

    old.end()
    _until(lambda: loops.bound(image) == [])

    assert (Path("/sys/block") / device.name / "ro").read_text() == "0\n"
    format_disk(attached(image))


def test_taking_a_disk_that_nobody_has_is_nothing(image: Path) -> None:
    disks.detach(image)
    disks.detach(image, patience=0)

    assert disks.who_uses(image) == []


def test_a_disk_is_cut_once_a_dead_hosts_relative_keeps_it_mounted(
    image: Path, tmp_path: Path, stack: ExitStack
) -> None:
    relative = a_holder(stack)
    mounted(image, relative, tmp_path / "m")

    began = time.monotonic()
    disks.detach(image)  # with patience: the host itself is gone

    assert time.monotonic() - began < disks.PATIENCE + 20
    assert disks.who_uses(image) == []
    assert relative.do("list", str(tmp_path / "m")) == "[]"


def test_a_device_that_went_to_somebody_else_meanwhile_is_left_alone(image: Path, tmp_path: Path) -> None:
    attached(image)
    (stale,) = loops.bound(image)
    stale = replace(stale, image=tmp_path / "disks" / "vol-00000000.img")

    loops.cut(stale)
    loops.release(stale)

    (still,) = loops.bound(image)
    assert not still.is_cut
    with still.path.open("rb") as opened:
        assert opened.seek(0, os.SEEK_END) == SIZE


def test_destroying_a_disk_cuts_its_holder_off_first(image: Path, tmp_path: Path, stack: ExitStack) -> None:
    holder = a_holder(stack)
    mounted(image, holder, tmp_path / "m")
    holder.do("open", "data", f"{tmp_path}/m/data")

    disks.destroy(image)

    assert not image.exists()
    assert holder.do("write", "data", "x") == "EIO"
    disks.destroy(image)


def test_a_mount_point_with_odd_characters_is_found_and_taken_away(
    image: Path, tmp_path: Path, stack: ExitStack
) -> None:
    holder = a_holder(stack)
    odd = tmp_path / "a b\\c\td"
    mounted(image, holder, odd)

    assert [mount.point for mount in mounts.who_has({loops.bound(image)[0].number})] == [odd]
    disks.detach(image, patience=0)
    assert disks.who_uses(image) == []


def _until(true: object, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    assert callable(true)
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)
