"""Loop devices and mount namespaces, one kernel call at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from builders.volumes import SIZE, Holder, all_at_once, format_disk, nothing_left_behind
from protokube.local.disk import disks, loops, mounts


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with nothing_left_behind(tmp_path):
        yield tmp_path


@pytest.fixture
def holder() -> Iterator[Holder]:
    made = Holder()
    yield made
    made.end()


def an_image(folder: Path, name: str = "vol-1") -> Path:
    image = folder / f"{name}.img"
    disks.create(image, SIZE)
    return image


def mounted(folder: Path, holder: Holder, name: str = "vol-1") -> loops.Loop:
    """A disk with a file system, mounted at folder/m in the holder's namespace."""
    image = an_image(folder, name)
    loops.bind(image, SIZE)
    (loop,) = loops.bound(image)
    format_disk(loop.path)
    (folder / "m").mkdir(exist_ok=True)
    assert holder.do("mount", str(loop.path), str(folder / "m")) == "ok"
    return loop


def test_everybody_who_binds_at_once_gets_a_device_of_his_own(folder: Path) -> None:
    images = [an_image(folder, f"vol-{number}") for number in range(8)]

    minors = all_at_once(8, lambda number: loops.bind(images[number], SIZE))

    assert len(set(minors)) == 8
    for image, minor in zip(images, minors, strict=True):
        assert [loop.minor for loop in loops.bound(image)] == [minor]


def test_devices_are_found_by_file_and_by_folder(folder: Path) -> None:
    (folder / "inner").mkdir()
    outer, inner = an_image(folder), an_image(folder / "inner")
    loops.bind(outer, SIZE)
    loops.bind(inner, SIZE)

    assert [loop.image for loop in loops.bound_under(folder / "inner")] == [inner]
    assert {loop.image for loop in loops.bound_under(folder)} == {outer, inner}
    assert loops.bound(folder / "vol-2.img") == []


def test_a_device_shows_no_more_than_the_size_it_was_bound_with(folder: Path) -> None:
    image = an_image(folder)
    os.truncate(image, SIZE * 2)

    loops.bind(image, SIZE)

    with loops.bound(image)[0].path.open("rb") as device:
        assert device.seek(0, os.SEEK_END) == SIZE


def test_the_device_of_a_deleted_image_is_still_known_by_its_name(folder: Path) -> None:
    image = an_image(folder)
    loops.bind(image, SIZE)

    image.unlink()

    (loop,) = loops.bound(image)
    loops.cut(loop)
    assert loops.bound(image)[0].is_cut
    loops.release(loop)
    assert loops.bound(image) == []


def test_cutting_twice_and_releasing_twice_is_nothing(folder: Path) -> None:
    image = an_image(folder)
    loops.bind(image, SIZE)
    (loop,) = loops.bound(image)

    for _ in range(2):
        loops.cut(loop)
    for _ in range(2):
        loops.release(loop)

    assert loops.bound(image) == []


def test_what_was_written_to_the_device_before_the_cut_is_in_the_image(folder: Path) -> None:
    image = an_image(folder)
    loops.bind(image, SIZE)
    (loop,) = loops.bound(image)
    with loop.path.open("r+b", buffering=0) as device:
        device.seek(8192)
        device.write(b"in the cache only")

        loops.cut(loop)

        assert device.seek(0, os.SEEK_END) == 0
    with image.open("rb") as opened:
        opened.seek(8192)
        assert opened.read(17) == b"in the cache only"


def test_an_image_that_is_not_there_is_not_bound(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        loops.bind(folder / "vol-none.img", SIZE)


def test_a_file_system_at_rest_takes_nothing_and_afterwards_only_errors(folder: Path, holder: Holder) -> None:
    loop = mounted(folder, holder)
    holder.do("open", "data", f"{folder}/m/data")
    answered = threading.Event()
    said: list[str] = []

    def write() -> None:
        said.append(holder.do("write", "data", "x"))
        answered.set()

    with mounts.at_rest(mounts.who_has({loop.number})):
        writer = threading.Thread(target=write)
        writer.start()
        # until it waits for the file system
        while Path(f"/proc/{holder.pid}/stat").read_text().rpartition(") ")[2][0] != "D":
            assert not answered.wait(0.01)
        assert not answered.wait(0.2)
    writer.join(10)

    assert said == ["EIO"]
    assert holder.do("open", "other", f"{folder}/m/other") == "EIO"


def test_coming_to_rest_writes_everything_out(folder: Path, holder: Holder) -> None:
    loop = mounted(folder, holder)
    holder.do("open", "data", f"{folder}/m/data")
    holder.do("write", "data", "never synced" * 1000)

    with mounts.at_rest(mounts.who_has({loop.number})):
        assert b"never synced" in loop.image.read_bytes()


def test_a_file_system_that_somebody_froze_is_cut_all_the_same(folder: Path, holder: Holder) -> None:
    loop = mounted(folder, holder)
    inside = f"/proc/{holder.pid}/root{folder}/m"
    subprocess.run(["fsfreeze", "--freeze", inside], check=True)
    try:
        disks.detach(loop.image, patience=0)
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", inside], capture_output=True)

    assert disks.who_uses(loop.image) == []


def test_a_mount_hidden_behind_another_one_is_taken_away_too(folder: Path, holder: Holder) -> None:
    loop = mounted(folder, holder)
    holder.do("open", "data", f"{folder}/m/data")
    subprocess.run(
        ["nsenter", f"--target={holder.pid}", "--mount", "mount", "-t", "tmpfs", "none", f"{folder}/m"], check=True
    )

    disks.detach(loop.image, patience=0)

    assert disks.who_uses(loop.image) == []
    assert holder.do("write", "data", "x") in ("1", "EIO")
    assert holder.do("fsync", "data") in ("EIO", "EROFS")


def test_every_place_at_which_a_disk_is_mounted_is_cleared(folder: Path, holder: Holder) -> None:
    loop = mounted(folder, holder)
    (folder / "second").mkdir()
    second = Holder()
    try:
        for who in (holder, second):
            assert who.do("mount", str(loop.path), str(folder / "second")) == "ok"
        assert len(mounts.who_has({loop.number})) == 3

        disks.detach(loop.image, patience=0)

        assert mounts.who_has({loop.number}) == []
        assert loops.bound(loop.image) == []
    finally:
        second.end()


def test_a_mount_is_found_for_a_process_that_lives_in_a_root_of_its_own(folder: Path) -> None:
    image = an_image(folder)
    loops.bind(image, SIZE)
    (loop,) = loops.bound(image)
    format_disk(loop.path)
    (folder / "root" / "data").mkdir(parents=True)
    script = (
        "import os, subprocess, sys, time\n"
        f"subprocess.run(['mount', '{loop.path}', '{folder}/root/data'], check=True)\n"
        f"os.chroot('{folder}/root'); os.chdir('/')\n"
        "print('there', flush=True); time.sleep(60)"
    )
    with ExitStack() as stack:
        command = ["unshare", "--mount", "--propagation", "private", sys.executable, "-S", "-c", script]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        stack.callback(process.communicate)
        stack.callback(process.kill)
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        (found,) = mounts.who_has({loop.number})
        assert (found.pid, found.point) == (process.pid, Path("/data"))

        disks.detach(image, patience=0)

        assert disks.who_uses(image) == []


def test_taking_away_a_mount_whose_process_is_gone_is_nothing(holder: Holder) -> None:
    pid = holder.pid
    holder.end()
    gone = mounts.MountedAt(pid, (7, 0), Path("/mnt"))

    mounts.take_away(gone)
    with mounts.at_rest([gone]):
        pass


def test_looking_for_mounts_does_not_stumble_over_processes_that_end(folder: Path) -> None:
    end = time.monotonic() + 0.5

    def churn() -> None:
        while time.monotonic() < end:
            subprocess.run(["true"])

    threads = [threading.Thread(target=churn) for _ in range(2)]
    for thread in threads:
        thread.start()
    while time.monotonic() < end:
        assert mounts.who_has({(7, 4095)}) == []
    for thread in threads:
        thread.join()
