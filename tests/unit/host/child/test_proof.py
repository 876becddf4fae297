"""The verdict on a device: one sentence for each thing that can be on it, and blank only when that is proven."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import signatures as signs
from clusters.disks import MIB, OTHER_UUID, SIZE, UUID, an_image, patch
from protokube.host import Content
from protokube.host.child import proof
from protokube.host.child.blkid import NONE, Signatures
from protokube.host.child.ext4 import BLOCK, mark
from protokube.host.child.proof import Finding, judge, look
from protokube.host.child.reading import open_direct

steady = settings(derandomize=True, deadline=None)

ZEROS = bytes(BLOCK)
AN_EXT4 = Signatures(type="ext4", usage="filesystem", uuid=UUID)


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The first block of an ext4 of 32 MiB with UUID."""
    image = an_image(tmp_path_factory.mktemp("ext4"), size=32 * MIB)
    options = ["-q", "-F", "-O", "metadata_csum", "-U", UUID]
    subprocess.run(["mkfs.ext4", *options, image], check=True, capture_output=True)
    return image.read_bytes()[:BLOCK]


def torn(head: bytes) -> bytes:
    return head[:1536] + bytes(BLOCK - 1536)


def test_zeros_and_no_signature_are_blank() -> None:
    assert judge(NONE, ZEROS, None, SIZE).content == proof.BLANK


def test_data_without_a_signature_is_dirty() -> None:
    found = judge(NONE, ZEROS, 7777, SIZE)

    assert found == Finding(proof.DIRTY, "no signature, but data: byte 7777 is not zero")


def test_an_ext4_is_ext4_whatever_the_case_of_its_uuid(head: bytes) -> None:
    assert judge(AN_EXT4._replace(uuid=UUID.upper()), head, 1024, SIZE).uuid == UUID


@pytest.mark.parametrize(
    ("found", "description"),
    [
        (Signatures(several=True), "several signatures at once"),
        (AN_EXT4._replace(table="dos"), "an ext4 file system and a dos partition table"),
        (AN_EXT4._replace(damaged=True), "an ext4 file system whose checksum is wrong"),
        (AN_EXT4._replace(uuid=OTHER_UUID), "an ext4 file system, but its superblock does not say so"),
        (AN_EXT4._replace(type="ext3"), "an ext3 file system"),
        (Signatures(table="gpt"), "a gpt partition table"),
        (Signatures(type="unknown"), "an unknown signature"),
    ],
)
def test_anything_but_one_whole_ext4_is_foreign(head: bytes, found: Signatures, description: str) -> None:
    assert judge(found, head, 1024, SIZE) == Finding(proof.FOREIGN, description)


def test_an_ext4_that_is_larger_than_its_device_is_foreign(head: bytes) -> None:
    found = judge(AN_EXT4, head, 1024, 32 * MIB - 512)

    assert found == Finding(proof.FOREIGN, "an ext4 file system of 33554432 bytes, more than the device has")


def test_an_ext4_without_a_superblock_is_foreign() -> None:
    assert judge(AN_EXT4, ZEROS, 0, SIZE).content == proof.FOREIGN


def test_a_superblock_that_was_torn_is_foreign(head: bytes) -> None:
    found = judge(AN_EXT4, torn(head), 1024, SIZE)

    assert found == Finding(proof.FOREIGN, "an ext4 file system whose checksum is wrong")


def test_a_mark_and_no_signature_are_a_format_that_was_cut_short() -> None:
    found = judge(NONE, mark(UUID).ljust(BLOCK, b"\0"), 0, SIZE)

    assert found == Finding(proof.DIRTY, f"a format with UUID {UUID} that was cut short", UUID, unfinished=True)


def test_a_mark_and_a_torn_superblock_of_that_format_are_a_format_that_was_cut_short(head: bytes) -> None:
    found = judge(AN_EXT4, mark(UUID) + torn(head)[len(mark(UUID)) :], 0, SIZE)

    assert (found.content, found.uuid, found.unfinished) == (proof.DIRTY, UUID, True)


def test_a_mark_and_a_whole_superblock_are_an_ext4(head: bytes) -> None:
    found = judge(AN_EXT4, mark(UUID) + head[len(mark(UUID)) :], 0, SIZE)

    assert (found.content, found.uuid, found.unfinished) == (proof.EXT4, UUID, False)


def test_a_mark_of_one_format_and_a_torn_superblock_of_another_are_foreign(head: bytes) -> None:
    found = judge(AN_EXT4, mark(OTHER_UUID) + torn(head)[len(mark(OTHER_UUID)) :], 0, SIZE)

    assert (found.content, found.unfinished) == (proof.FOREIGN, False)


@pytest.mark.parametrize("found", [Signatures(type="xfs"), Signatures(table="gpt"), Signatures(several=True)])
def test_a_mark_does_not_excuse_a_foreign_signature(found: Signatures) -> None:
    assert judge(found, mark(UUID).ljust(BLOCK, b"\0"), 0, SIZE).content == proof.FOREIGN


SEEN = st.builds(
    Signatures,
    several=st.booleans(),
    type=st.sampled_from(["", "ext4", "xfs"]),
    usage=st.sampled_from(["", "filesystem", "raid"]),
    uuid=st.sampled_from(["", UUID, OTHER_UUID]),
    label=st.sampled_from(["", "pgdata"]),
    table=st.sampled_from(["", "dos", "gpt"]),
    damaged=st.booleans(),
)
HEADS = st.sampled_from([b"", ZEROS, mark(UUID).ljust(BLOCK, b"\0"), b"\xff" * BLOCK])


@steady
@given(found=SEEN, head=HEADS, not_zero=st.none() | st.integers(0, SIZE))
def test_blank_takes_zeros_everywhere_and_no_signature_whatever_else_is_seen(
    found: Signatures, head: bytes, not_zero: int | None
) -> None:
    verdict = judge(found, head, not_zero, SIZE)

    if verdict.content == proof.BLANK:
        assert not_zero is None
        assert found == NONE
    if verdict.unfinished:
        assert head.startswith(mark(verdict.uuid or ""))
    assert verdict.description


def test_the_words_are_those_of_the_rest_of_the_program() -> None:
    words = (proof.BLANK, proof.EXT4, proof.FOREIGN, proof.DIRTY, proof.BUSY, proof.UNREADABLE)

    assert set(words) == {content.value for content in Content}


def looked_at(image: Path, size: int = SIZE) -> Finding:
    handle = open_direct(str(image), os.O_RDONLY)
    try:
        return look(handle, size)
    finally:
        os.close(handle)


def test_a_blank_image_is_blank(tmp_path: Path) -> None:
    assert looked_at(an_image(tmp_path)).content == proof.BLANK


def test_an_xfs_is_foreign_with_its_label(tmp_path: Path) -> None:
    image = an_image(tmp_path)
    patch(image, signs.xfs(SIZE))

    assert looked_at(image) == Finding(proof.FOREIGN, 'an xfs file system labelled "pgdata"')


def test_one_byte_at_the_very_end_is_dirty(tmp_path: Path) -> None:
    image = an_image(tmp_path)
    patch(image, {-1: b"\x01"})

    assert looked_at(image) == Finding(proof.DIRTY, f"no signature, but data: byte {SIZE - 1} is not zero")


def test_an_image_that_ends_early_is_unreadable_whatever_is_on_it(tmp_path: Path) -> None:
    image = an_image(tmp_path)
    patch(image, signs.xfs(SIZE))
    os.truncate(image, SIZE - 4096)

    found = looked_at(image)

    assert found.content == proof.UNREADABLE
    assert "short read at byte" in found.description


def test_a_device_of_one_sector_is_looked_at_too(tmp_path: Path) -> None:
    assert looked_at(an_image(tmp_path, size=512), 512).content == proof.BLANK


def test_a_handle_that_cannot_be_read_is_unreadable(tmp_path: Path) -> None:
    handle = os.open(an_image(tmp_path), os.O_WRONLY)
    try:
        found = look(handle, SIZE)
    finally:
        os.close(handle)

    assert found == Finding(proof.UNREADABLE, "read error in the 1048576 bytes at byte 0: Bad file descriptor")
