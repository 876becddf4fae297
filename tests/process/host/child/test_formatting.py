"""What may be formatted, and the order in which a format is written."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from clusters.disks import MIB, OTHER_UUID, UUID, an_image
from protokube.host.child import ext4, formatting, proof
from protokube.host.child.claim import Refusal
from protokube.host.child.ext4 import BLOCK, mark
from protokube.host.child.formatting import make, pieces, put, refuse_unless_allowed, write
from protokube.host.child.proof import BLANK, BUSY, DIRTY, EXT4, FOREIGN, UNREADABLE, Finding
from protokube.host.child.reading import open_direct

SIZE = 72 * MIB
CONTENTS = (BLANK, EXT4, FOREIGN, DIRTY, BUSY, UNREADABLE)
ALL_CASES = list(product(CONTENTS, (None, UUID, OTHER_UUID), (False, True), (False, True)))


def is_allowed(content: str, uuid: str | None, unfinished: bool, again: bool) -> bool:
    try:
        refuse_unless_allowed(Finding(content, "text", uuid, unfinished), UUID, again)
    except Refusal:
        return False
    return True


def test_of_everything_that_can_be_found_only_these_are_written_to() -> None:
    allowed = {case for case in ALL_CASES if is_allowed(*case)}

    blank = {case for case in ALL_CASES if case[0] == BLANK}
    begun_by_this_format = {(DIRTY, UUID, True, True)}
    finished_by_this_format = {(EXT4, UUID, unfinished, True) for unfinished in (False, True)}
    assert allowed == blank | begun_by_this_format | finished_by_this_format


def test_a_refusal_says_what_was_found_and_what_was_wanted() -> None:
    found = Finding(FOREIGN, 'an xfs file system labelled "pgdata"')

    with pytest.raises(Refusal) as first:
        refuse_unless_allowed(found, UUID, False)
    with pytest.raises(Refusal) as second:
        refuse_unless_allowed(found, UUID, True)

    assert str(first.value) == (
        'not formatted, it is foreign: an xfs file system labelled "pgdata"; wanted a blank device'
    )
    assert str(second.value).endswith(f"wanted a blank device, or what a format with UUID {UUID} left")


@pytest.fixture
def image() -> Iterator[int]:
    made = os.memfd_create("image")
    make(made, SIZE, UUID)
    yield made
    os.close(made)


@pytest.fixture
def memory() -> Iterator[int]:
    made = os.memfd_create("image")
    yield made
    os.close(made)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[int]:
    handle = open_direct(str(an_image(tmp_path, size=SIZE)), os.O_RDWR)
    yield handle
    os.close(handle)


def checked(disk: int) -> None:
    """e2fsck finds nothing to say about it."""
    path = Path(f"/proc/self/fd/{disk}").readlink()
    ran = subprocess.run(["e2fsck", "-fn", path], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_what_is_copied_is_a_whole_file_system(image: int, disk: int) -> None:
    write(disk, image, UUID)

    assert proof.look(disk, SIZE) == Finding(EXT4, "an ext4 file system", UUID)
    copied = Path(f"/proc/self/fd/{disk}").readlink().read_bytes()
    assert hashlib.sha256(copied).digest() == hashlib.sha256(os.pread(image, SIZE, 0)).digest()
    checked(disk)


def test_pieces_are_all_that_mkfs_wrote_but_the_first_block(image: int) -> None:
    copied = bytearray(SIZE)
    for position, piece in pieces(image):
        assert position >= BLOCK
        assert position % BLOCK == len(piece) % BLOCK == 0
        copied[position : position + len(piece)] = piece

    assert copied[:BLOCK] == bytes(BLOCK)
    assert copied[BLOCK:] == os.pread(image, SIZE, 0)[BLOCK:]


def test_only_a_little_is_written(image: int) -> None:
    assert sum(len(piece) for _, piece in pieces(image)) < MIB


def test_the_mark_of_a_finished_format_is_gone(image: int, disk: int) -> None:
    write(disk, image, UUID)

    assert os.pread(image, 1024, 0) == bytes(1024)
    assert ext4.marked(proof.head(disk, SIZE)) is None


def test_between_superblock_and_mark_it_is_already_ext4_and_clearing_finishes_it(image: int, disk: int) -> None:
    write(disk, image, UUID)
    first = proof.head(disk, SIZE)
    put(disk, {0: mark(UUID) + first[len(mark(UUID)) :]})

    assert proof.look(disk, SIZE).content == EXT4
    formatting.clear_mark(disk)

    assert proof.head(disk, SIZE) == first
    checked(disk)


def test_clearing_where_there_is_no_mark_writes_nothing(tmp_path: Path) -> None:
    handle = open_direct(str(an_image(tmp_path, size=SIZE)), os.O_RDONLY)
    try:
        formatting.clear_mark(handle)  # a write would fail
    finally:
        os.close(handle)


@pytest.mark.parametrize("done", range(4))
def test_after_each_step_the_disk_says_whether_the_format_was_finished(image: int, disk: int, done: int) -> None:
    first = os.pread(image, BLOCK, 0)
    steps = [
        {0: mark(UUID).ljust(BLOCK, b"\0")},
        dict(list(pieces(image))[:3]),
        dict(pieces(image)),
        {0: mark(UUID) + first[len(mark(UUID)) :]},
    ]
    for step in steps[: done + 1]:
        put(disk, step)

    found = proof.look(disk, SIZE)

    assert found.uuid == UUID
    assert (found.content == EXT4) is (done == 3)
    assert found.unfinished is (done < 3)
    refuse_unless_allowed(found, UUID, again=True)
    with pytest.raises(Refusal):
        refuse_unless_allowed(found, UUID, again=False)
    with pytest.raises(Refusal):
        refuse_unless_allowed(found, OTHER_UUID, again=True)
    write(disk, image, UUID)
    checked(disk)


def test_features_are_those_that_older_machines_can_mount(image: int) -> None:
    shown = subprocess.run(
        ["dumpe2fs", "-h", f"/proc/{os.getpid()}/fd/{image}"], capture_output=True, text=True, check=True
    ).stdout
    features = next(line for line in shown.splitlines() if line.startswith("Filesystem features:"))

    assert "metadata_csum" in features
    assert not {"orphan_file", "metadata_csum_seed", "casefold", "encrypt", "verity"} & set(features.split())
    assert "Errors behavior:          Remount read-only" in shown
    assert "Reserved block count:     0" in shown


def test_a_device_too_small_for_a_file_system_is_refused(memory: int) -> None:
    with pytest.raises(Refusal, match=r"mkfs\.ext4 ended with 1"):
        make(memory, 4096, UUID)


def test_a_uuid_that_is_none_is_refused(memory: int) -> None:
    with pytest.raises(Refusal, match=r"mkfs\.ext4 ended with 1"):
        make(memory, SIZE, "not-a-uuid")


def test_a_uuid_that_mkfs_makes_up_itself_is_not_taken_for_the_one_asked_for(memory: int) -> None:
    with pytest.raises(Refusal, match="did not make a file system with UUID random"):
        make(memory, SIZE, "random")


def test_a_write_that_fails_is_an_error() -> None:
    handle = os.open("/dev/full", os.O_RDWR)
    try:
        with pytest.raises(OSError, match="No space left"):
            put(handle, {0: b"x" * BLOCK})
    finally:
        os.close(handle)
