"""The few fields of an ext4 superblock that we check ourselves, and the mark of a format in progress.

ext4 does not use its first 1024 bytes. While we format, a text with the UUID is there: it is written before anything
else and removed after everything else. So it identifies an interrupted format, and data that merely lost its signature
is not mistaken for one.
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
    """Of the file system, in bytes."""
    intact: bool
    """Its checksum is right, or it has none. Not every libblkid checks it."""


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
    """CRC-32C as ext4 uses it: without the usual final inversion."""
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
    """The UUID in the mark of an unfinished format, if there is one."""
    start = len(MARK)
    uuid = head[start : start + UUID_LENGTH].decode(errors="replace")
    return uuid if head.startswith(mark(uuid)) and len(uuid) == UUID_LENGTH else None
