"""The few fields of an ext4 superblock that we check ourselves, and the mark of a format under way.

The first 1024 bytes of an ext4 belong to nobody. While we format, a sentence with the UUID stands there: it is written
before anything else and taken away after everything else, so a format that was cut short proves itself, and data
that merely lost its signature is not taken for one.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

BLOCK = 4096
SUPERBLOCK = 1024
MAGIC = 0xEF53
IS_64BIT = 0x80
HAS_CHECKSUMS = 0x400
CHECKSUM = 0x3FC
CASTAGNOLI = 0x82F63B78
MARK = "protokube is formatting this device, UUID "
UUID_LENGTH = 36


class Superblock(NamedTuple):
    uuid: str
    size: int
    """In bytes, as far as the file system reaches."""
    intact: bool
    """Its checksum is right, or it has none. Not every libblkid looks at it."""


def superblock(head: bytes) -> Superblock | None:
    """The superblock, if it is one."""
    raw = head[SUPERBLOCK : 2 * SUPERBLOCK]
    if len(raw) < SUPERBLOCK or struct.unpack_from("<H", raw, 0x38)[0] != MAGIC:
        return None
    low, block_shift, features, read_only_features, high, checksum = (
        int(struct.unpack_from("<I", raw, offset)[0]) for offset in (0x4, 0x18, 0x60, 0x64, 0x150, CHECKSUM)
    )
    blocks = low | (high << 32 if features & IS_64BIT else 0)
    intact = not read_only_features & HAS_CHECKSUMS or crc32c(raw[:CHECKSUM]) == checksum
    digits = raw[0x68:0x78].hex()
    uuid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return Superblock(uuid, blocks << (10 + block_shift), intact)


def crc32c(data: bytes) -> int:
    """The checksum of ext4: not inverted at the end, unlike everybody else's."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (CASTAGNOLI if value & 1 else 0)
    return value


def mark(uuid: str) -> bytes:
    """The first bytes of a device that is being formatted."""
    return f"{MARK}{uuid}\n".encode()


def marked(head: bytes) -> str | None:
    """The UUID in the mark, if a format was begun and not finished."""
    start = len(MARK)
    uuid = head[start : start + UUID_LENGTH].decode(errors="replace")
    return uuid if head.startswith(mark(uuid)) and len(uuid) == UUID_LENGTH else None
