"""What we read off a superblock ourselves agrees with what mkfs.ext4 wrote there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters.disks import MIB, UUID, an_image
from protokube.host.child import ext4
from protokube.host.child.ext4 import BLOCK, Superblock, crc32c, mark, marked, superblock

steady = settings(derandomize=True, deadline=None)


def head_of(image: Path, *options: str) -> bytes:
    subprocess.run(["mkfs.ext4", "-q", "-F", *options, "-U", UUID, image], check=True, capture_output=True)
    return image.read_bytes()[:BLOCK]


@pytest.mark.parametrize(
    "options", [(), ("-b", "1024"), ("-O", "^64bit"), ("-O", "^metadata_csum"), ("-O", "^64bit,^metadata_csum")]
)
def test_uuid_and_size_are_read(tmp_path: Path, options: tuple[str, ...]) -> None:
    head = head_of(an_image(tmp_path, size=32 * MIB), *options)

    assert superblock(head) == Superblock(UUID, 32 * MIB, intact=True)


def test_blocks_that_do_not_fill_the_device_do_not_count(tmp_path: Path) -> None:
    head = head_of(an_image(tmp_path, size=32 * MIB + 512), "-b", "4096")

    assert superblock(head) == Superblock(UUID, 32 * MIB, intact=True)


@pytest.mark.parametrize("position", [1024 + 0x4, 1024 + 0x68, 1024 + 0x78, 1024 + 0x3FB, 1024 + 0x3FF])
def test_a_changed_byte_is_noticed(tmp_path: Path, position: int) -> None:
    head = bytearray(head_of(an_image(tmp_path, size=32 * MIB), "-O", "metadata_csum"))
    head[position] ^= 1

    found = superblock(bytes(head))

    assert found is not None
    assert not found.intact


@pytest.mark.parametrize("head", [b"", bytes(512), bytes(2047), bytes(BLOCK), b"\xff" * BLOCK])
def test_what_is_no_superblock_is_none(head: bytes) -> None:
    assert superblock(head) is None


def test_the_checksum_is_the_one_everybody_knows() -> None:
    assert crc32c(b"123456789") ^ 0xFFFFFFFF == 0xE3069283


def test_a_mark_is_read_back() -> None:
    head = mark(UUID).ljust(BLOCK, b"\0")

    assert marked(head) == UUID
    assert UUID.encode() in head
    assert len(mark(UUID)) < 512  # within one sector, so it is written whole or not at all


def test_a_mark_beside_a_superblock_leaves_it_readable(tmp_path: Path) -> None:
    first = head_of(an_image(tmp_path, size=32 * MIB))
    head = mark(UUID) + first[len(mark(UUID)) :]

    assert marked(head) == UUID
    assert superblock(head) == superblock(first)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        bytes(BLOCK),
        ext4.MARK.encode(),
        ext4.MARK.encode() + bytes(BLOCK),
        mark(UUID)[:-1] + b"x",
        mark(UUID)[:-2] + b"\n",
        b" " + mark(UUID),
    ],
)
def test_what_is_not_quite_a_mark_is_none(head: bytes) -> None:
    assert marked(head) is None


@steady
@given(head=st.binary(max_size=200))
def test_no_content_makes_it_fall_over(head: bytes) -> None:
    assert superblock(head) is None
    assert marked(head) is None
    marked(ext4.MARK.encode() + head)
    superblock(head.ljust(1024 + 0x38, b"\0") + b"\x53\xef" + head.ljust(2048, b"\xff"))
