"""Formatting needs proof: whatever is on a real device, or wrong with it, nothing but a blank one is written to.

A format is counted by what it does: the content of the disk before and after is compared. The reason is always told.
"""

from __future__ import annotations

import fcntl
import os
import random
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
    SIZE,
    UUID,
    Liar,
    an_image,
    attached,
    digest,
    done_here,
    in_memory,
    lying,
    own_mounts,
    patch,
    run,
    settle,
    wait_until,
)
from protokube.host import Block, Content, Done, Failed, Format, Probe, Probed
from protokube.host.child.blkid import NONE, signatures
from protokube.host.child.reading import Unreadable
from protokube.host.disks import HostDisks
from protokube.host.jobs import Child

MIDDLE = SIZE // 2


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


def probed(block: Block) -> Probed:
    found = done_here(Probe(block=block))
    assert isinstance(found, Probed), found
    return found


def refused(block: Block, uuid: str = UUID) -> list[str]:
    """The reasons for not formatting it, neither for the first time nor again."""
    results = [done_here(Format(block=block, uuid=uuid, again=again)) for again in (False, True)]
    assert all(isinstance(result, Failed) for result in results), results
    return [result.why for result in results if isinstance(result, Failed)]


def mkfs(*options: str) -> Callable[[Path], object]:
    return lambda image: run("mkfs.ext4", "-q", "-F", *options, image)


def built(*builds: Callable[[int], dict[int, bytes]]) -> Callable[[Path], object]:
    return lambda image: patch(image, {at: data for build in builds for at, data in build(SIZE).items()})


def bytes_at(position: int, data: bytes = b"\x01") -> Callable[[Path], object]:
    return lambda image: patch(image, {position: data})


def ext4_without_its_superblock(image: Path) -> object:
    mkfs("-U", UUID)(image)
    return patch(image, {0: bytes(4096)})


def ext4_with_a_partition_table(image: Path) -> object:
    mkfs("-U", UUID)(image)
    return patch(image, signs.dos_table(SIZE))


def mkswap(image: Path) -> object:
    return run("mkswap", image)


FOREIGN: dict[str, tuple[Callable[[Path], object], Content, str]] = {
    "ext4 of another UUID": (mkfs("-U", OTHER_UUID, "-L", "data"), Content.EXT4, 'an ext4 file system labelled "data"'),
    "ext4 with a table": (ext4_with_a_partition_table, Content.FOREIGN, "a dos partition table"),
    "ext2": (mkfs("-t", "ext2", "-U", UUID), Content.FOREIGN, "an ext2 file system"),
    "swap": (mkswap, Content.FOREIGN, "a swap signature"),
    "xfs": (built(signs.xfs), Content.FOREIGN, 'an xfs file system labelled "pgdata"'),
    "btrfs": (built(signs.btrfs), Content.FOREIGN, "a btrfs file system"),
    "vfat": (built(signs.vfat), Content.FOREIGN, "a vfat file system"),
    "LUKS": (built(signs.luks), Content.FOREIGN, "a crypto_LUKS signature"),
    "LVM2": (built(signs.lvm), Content.FOREIGN, "an LVM2_member signature"),
    "gpt": (built(signs.gpt), Content.FOREIGN, "a gpt partition table"),
    "gpt whose start was wiped": (built(signs.gpt_at_the_end_only), Content.FOREIGN, "a gpt partition table"),
    "dos": (built(signs.dos_table), Content.FOREIGN, "a dos partition table"),
    "two at once": (built(signs.xfs, signs.btrfs), Content.FOREIGN, "several signatures at once"),
    "first byte": (bytes_at(0), Content.DIRTY, "byte 0 is not zero"),
    "last sector": (bytes_at(-512, b"end"), Content.DIRTY, f"byte {SIZE - 512} is not zero"),
    "last byte": (bytes_at(-1), Content.DIRTY, f"byte {SIZE - 1} is not zero"),
    "middle": (bytes_at(MIDDLE), Content.DIRTY, f"byte {MIDDLE} is not zero"),
    "a wiped superblock": (ext4_without_its_superblock, Content.DIRTY, "is not zero"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_disk_with_something_on_it_is_never_formatted(tmp_path: Path, name: str) -> None:
    make, content, told = FOREIGN[name]
    image = an_image(tmp_path)
    make(image)
    before = digest(image)

    with attached(image) as block:
        found = probed(block)
        why = refused(block)

    assert found.content is content
    assert told in found.description
    assert all(told in each and f"it is {content.value}" in each for each in why)
    assert digest(image) == before


@pytest.fixture
def liar(tmp_path: Path) -> Iterator[Liar]:
    with lying(an_image(tmp_path)) as made:
        yield made


PLACES = {"the head": 0, "the first MiB": MIB, "the middle": MIDDLE, "the tail": SIZE - 2 * MIB, "the end": SIZE - 512}


@pytest.mark.parametrize("fault", ["error", "short"])
def test_a_disk_that_cannot_be_read_somewhere_is_never_formatted(liar: Liar, fault: str) -> None:
    before = digest(liar.image)
    for place, position in PLACES.items():
        liar.tell(fault, position, position + 512)

        found = probed(liar.block)
        why = refused(liar.block)

        assert found.content is Content.UNREADABLE, place
        assert "read" in found.description
        assert all(f"it is unreadable: {found.description}" in each for each in why)
        assert liar.tell("writes") == "0"
        liar.tell("heal")
    assert digest(liar.image) == before
    assert probed(liar.block).content is Content.BLANK


@pytest.mark.parametrize("position", [0, 4096, 65536, SIZE - 65536])
def test_libblkid_by_itself_does_not_take_an_error_for_nothing(liar: Liar, position: int) -> None:
    """The command line tool answers 2 to both; this is the reason for not using it."""
    assert signatures(str(liar.block.path)) == NONE
    liar.tell("error", position, position + 4096)

    with pytest.raises(Unreadable, match="libblkid could not read the device: Input/output error"):
        signatures(str(liar.block.path))


def test_a_disk_with_data_that_cannot_be_read_is_unreadable_and_neither_blank_nor_foreign(liar: Liar) -> None:
    """What users lost their data to: the probe failed to read, and that was taken for "no file system"."""
    mkfs("-U", OTHER_UUID)(liar.image)
    before = digest(liar.image)
    liar.tell("error", 0, SIZE)

    found = probed(liar.block)
    refused(liar.block)

    assert found.content is Content.UNREADABLE
    assert digest(liar.image) == before


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"size": SIZE + 512}, f"has {SIZE} bytes now, it had {SIZE + 512}"),
        ({"serial": "vol-2"}, "has the serial vol-1 now, it had vol-2"),
        ({"serial": None}, "has the serial vol-1 now, it had None"),
        ({"number": (7, 9999)}, "is another device now: 7:"),
    ],
)
def test_a_disk_that_is_not_the_one_that_was_found_is_never_formatted(
    tmp_path: Path, wrong: dict[str, object], told: str
) -> None:
    image = an_image(tmp_path)
    before = digest(image)

    with attached(image) as block:
        other = replace(block, **wrong)  # type: ignore[arg-type]
        results = [done_here(Probe(block=other)), *map(Failed, refused(other))]

    assert all(isinstance(result, Failed) and told in result.why for result in results), results
    assert digest(image) == before


def test_a_disk_that_is_gone_is_not_formatted_and_neither_is_the_next_one_under_its_name(tmp_path: Path) -> None:
    first, second = an_image(tmp_path, "gone.img"), an_image(tmp_path, "next.img")  # no other test has such serials
    with attached(first) as block:
        pass
    assert isinstance(done_here(Probe(block=block)), Failed)
    refused(block)

    losetup = ["losetup", str(block.path), str(second)]
    if subprocess.run(losetup, capture_output=True).returncode == 0:  # unless somebody else was faster
        try:
            why = refused(block)
        finally:
            run("losetup", "--detach", block.path)
        assert all("has the serial next now, it had gone" in each for each in why)
    assert digest(second) == digest(first)


def test_a_disk_that_has_become_another_size_is_not_formatted(tmp_path: Path) -> None:
    image = an_image(tmp_path)
    with attached(image) as block:
        os.truncate(image, SIZE // 2)
        run("losetup", "--set-capacity", block.path)

        why = refused(block)

    assert all(f"has {SIZE // 2} bytes now, it had {SIZE}" in each for each in why)


@contextmanager
def opened(block: Block, flags: str) -> Iterator[int]:
    """Another process has the device open."""
    code = f"import os, sys; os.open({str(block.path)!r}, {flags}); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        yield process.pid
        process.kill()


@pytest.mark.parametrize("flags", ["os.O_RDWR", "os.O_RDONLY", "os.O_RDWR | os.O_EXCL"])
def test_a_disk_that_somebody_has_open_is_busy_and_never_formatted(
    tmp_path: Path, disks: HostDisks, flags: str
) -> None:
    image = an_image(tmp_path)
    before = digest(image)

    with attached(image) as block, opened(block, flags) as pid:
        found = probed(block)
        formats = [Format(block=block, uuid=UUID, again=again) for again in (False, True)]
        for job in formats:
            disks.run(job)
        why = [settle(disks, job) for job in formats]

    assert found.content is Content.BUSY
    assert f"(pid {pid}) has open {block.path}" in found.description
    assert all(isinstance(each, Failed) and f"{block.path} is in use" in each.why for each in why)
    assert digest(image) == before


def looked_at_for_a_moment(block: Block, disks: HostDisks) -> Content:
    with opened(block, "os.O_RDONLY"):
        disks.run(Probe(block=block))
        time.sleep(0.3)
    found = settle(disks, Probe(block=block))
    assert isinstance(found, Probed)
    return found.content


def test_a_disk_that_somebody_looks_at_for_a_moment_is_not_busy(tmp_path: Path, disks: HostDisks) -> None:
    """udev opens every new disk. On a machine that is busy with other tests the moment can be too long."""
    with attached(an_image(tmp_path)) as block:
        assert any(looked_at_for_a_moment(block, disks) is Content.BLANK for _ in range(5))


def test_a_disk_that_is_mounted_is_busy_even_in_another_namespace(tmp_path: Path) -> None:
    image = an_image(tmp_path)
    mkfs("-U", UUID)(image)
    point = tmp_path / "point"
    point.mkdir()
    with attached(image) as block:
        enter = ["unshare", "--mount", "--propagation=private", "sh", "-c"]
        script = f"mount {block.path} {point} && echo mounted && read line"
        with subprocess.Popen([*enter, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"mounted\n"

            found = probed(block)
            why = refused(block)

            process.kill()

    assert found.content is Content.BUSY
    assert f"{block.path} is mounted in the mount namespace of process {process.pid}" in found.description
    assert all("is mounted in the mount namespace" in each for each in why)


def checked(block: Block) -> None:
    """e2fsck reads everything and finds nothing to say."""
    run("e2fsck", "-fn", block.path)


@pytest.mark.parametrize("size", [16 * MIB, SIZE, SIZE + 512, 3 << 30])
def test_a_blank_disk_is_formatted_once_with_the_right_uuid(tmp_path: Path, disks: HostDisks, size: int) -> None:
    with attached(an_image(tmp_path, size=size)) as block:
        assert probed(block).content is Content.BLANK
        assert settle(disks, Format(block=block, uuid=UUID)) == Done()

        assert probed(block) == Probed(content=Content.EXT4, description="an ext4 file system", uuid=UUID)
        assert run("blkid", "-p", "-o", "value", "-s", "UUID", block.path) == UUID
        checked(block)


def test_a_disk_with_large_sectors_is_formatted(tmp_path: Path) -> None:
    with attached(an_image(tmp_path), options=("--sector-size=4096",)) as block:
        assert probed(block).content is Content.BLANK
        assert done_here(Format(block=block, uuid=UUID)) == Done()
        assert probed(block).content is Content.EXT4
        checked(block)


def test_a_disk_that_cannot_be_written_to_is_read_and_not_formatted(tmp_path: Path) -> None:
    with attached(an_image(tmp_path), options=("--read-only",)) as block:
        assert probed(block).content is Content.BLANK
        why = refused(block)

    refusals = ("cannot be opened", "Operation not permitted")  # kernels differ in when they say it
    assert all(any(refusal in each for refusal in refusals) for each in why)


def test_a_disk_too_small_for_a_file_system_is_left_as_it_is(tmp_path: Path) -> None:
    image = an_image(tmp_path, size=65536)
    before = digest(image)
    with attached(image) as block:
        why = refused(block)

    assert all("mkfs.ext4 ended with 1" in each for each in why)
    assert digest(image) == before


def test_a_disk_that_another_program_has_locked_is_not_formatted(tmp_path: Path) -> None:
    """By this lock, tools that change a disk keep udev and each other away from it."""
    image = an_image(tmp_path)
    before = digest(image)
    with attached(image) as block:
        held = os.open(block.path, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_SH)
            found = done_here(Format(block=block, uuid=UUID))
        finally:
            os.close(held)

        assert found == Failed(f"{block.path} is locked by another program")
        assert digest(image) == before
        assert done_here(Format(block=block, uuid=UUID)) == Done()


def test_a_formatted_disk_is_not_formatted_again_and_again_changes_nothing(tmp_path: Path) -> None:
    image = an_image(tmp_path)
    with attached(image) as block:
        done_here(Format(block=block, uuid=UUID))
        before = digest(image)

        first = done_here(Format(block=block, uuid=UUID))
        again = done_here(Format(block=block, uuid=UUID, again=True))
        why = refused(block, OTHER_UUID)

    assert isinstance(first, Failed)
    assert "it is ext4" in first.why
    assert again == Done()
    assert all("it is ext4" in each for each in why)
    assert digest(image) == before


def test_a_disk_of_a_gibibyte_is_formatted_in_a_moment(tmp_path: Path, disks: HostDisks) -> None:
    """The proof and the start of the child included; the format itself takes a few milliseconds."""
    took = []
    for number in range(3):
        with attached(an_image(tmp_path, f"vol-{number}.img", size=1 << 30)) as block:
            begun = time.monotonic()
            assert settle(disks, Format(block=block, uuid=UUID)) == Done()
            took.append(time.monotonic() - begun)

    assert min(took) < 3


def test_after_a_failure_at_each_single_write_the_disk_is_finished_by_a_second_format_and_by_nothing_else(
    tmp_path: Path,
) -> None:
    """Each write of a format is the last one that arrives, once: like being killed right after it."""
    seen, size = set(), 12 * MIB
    with lying(an_image(tmp_path, size=size)) as liar:
        for count in range(100):
            os.truncate(liar.image, 0)
            os.truncate(liar.image, size)
            liar.tell("refuse", count)
            first = done_here(Format(block=liar.block, uuid=UUID))
            liar.tell("heal")
            found = probed(liar.block)
            seen.add(found.content)
            if first == Done():
                break
            assert isinstance(first, Failed)
            assert "Input/output error" in first.why
            finish(liar.block, found)

    assert count >= 5
    assert seen == {Content.BLANK, Content.DIRTY, Content.EXT4}


def finish(block: Block, found: Probed) -> None:
    """What may and what may not be done with a disk whose format did not come to its end."""
    if found.content is not Content.BLANK:
        assert found.uuid == UUID
        first = done_here(Format(block=block, uuid=UUID))
        assert isinstance(first, Failed)
        assert isinstance(done_here(Format(block=block, uuid=OTHER_UUID, again=True)), Failed)
    assert done_here(Format(block=block, uuid=UUID, again=True)) == Done()
    assert probed(block) == Probed(content=Content.EXT4, description="an ext4 file system", uuid=UUID)
    checked(block)


def test_a_format_that_is_killed_at_any_moment_is_finished_by_a_second_one(tmp_path: Path, disks: HostDisks) -> None:
    whole = time.monotonic()
    with attached(an_image(tmp_path)) as block:
        assert settle(disks, Format(block=block, uuid=UUID)) == Done()
    whole = time.monotonic() - whole
    for number in range(6):
        image = an_image(tmp_path, f"vol-{number}.img")
        with attached(image) as block:
            child = Child(Format(block=block, uuid=UUID), clock=time.monotonic)
            time.sleep(random.uniform(0.2, 1) * whole)
            child.kill()
            wait_until(lambda ended=child: ended.result, "it does not end")  # type: ignore[misc]

            found = probed(block)
            assert found.content in (Content.BLANK, Content.DIRTY, Content.EXT4)
            finish(block, found)
        image.unlink()


def test_a_disk_that_throws_writes_away_is_not_called_formatted(liar: Liar) -> None:
    liar.tell("forget")

    found = done_here(Format(block=liar.block, uuid=UUID))

    assert isinstance(found, Failed)
    assert "does not read back the same" in found.why


def test_a_format_whose_agent_is_gone_does_nothing(tmp_path: Path) -> None:
    """The agent that comes after it decides anew."""
    image = an_image(tmp_path)
    before = digest(image)
    with attached(image) as block:
        job = Format(block=block, uuid=UUID)

        assert done_here(job, parent=os.getpid()) == Failed("the agent that requested the format is gone")
        assert digest(image) == before

        assert done_here(job) == Done()
        assert digest(image) != before
