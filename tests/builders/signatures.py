"""The first bytes of other people's disks: enough of each format for libblkid to know it, without its tools."""

from __future__ import annotations

import struct
import uuid
import zlib

from protokube.host.child.ext4 import crc32c

SECTOR = 512
BTRFS_AT = 65536
LVM_SEED = 0xF597A6CF


def xfs(size: int, label: str = "pgdata") -> dict[int, bytes]:
    blocks = size // 4096
    group = blocks // 4
    block = bytearray(SECTOR)
    struct.pack_into(">4sIQ", block, 0, b"XFSB", 4096, blocks)
    block[32:48] = uuid.UUID(int=7).bytes
    struct.pack_into(">QQQQ", block, 48, group // 2 + 4, 128, 129, 130)
    struct.pack_into(">IIIIIHHHH", block, 80, 1, group, 4, 0, 1000, 0xB4A5, 512, 512, 8)
    block[108 : 108 + len(label)] = label.encode()
    struct.pack_into("BBBBBBBB", block, 120, 12, 9, 9, 3, (group - 1).bit_length(), 0, 0, 25)
    return {0: bytes(block)}


def btrfs(size: int) -> dict[int, bytes]:
    block = bytearray(4096)
    block[32:48] = uuid.UUID(int=8).bytes
    struct.pack_into("<QQ8s", block, 48, BTRFS_AT, 1, b"_BHRfS_M")
    struct.pack_into("<QQ", block, 112, size, 0)
    struct.pack_into("<III", block, 144, 4096, 16384, 16384)
    struct.pack_into("<I", block, 0, crc32c(bytes(block[32:])) ^ 0xFFFFFFFF)
    return {BTRFS_AT: bytes(block)}


def luks(size: int) -> dict[int, bytes]:
    block = bytearray(592)
    struct.pack_into(">6sH", block, 0, b"LUKS\xba\xbe", 1)
    block[168:204] = str(uuid.UUID(int=9)).encode()
    return {0: bytes(block)}


def lvm(size: int) -> dict[int, bytes]:
    block = bytearray(SECTOR)
    struct.pack_into("<8sQII8s32s", block, 0, b"LABELONE", 1, 0, 32, b"LVM2 001", b"a" * 32)
    struct.pack_into("<I", block, 16, zlib.crc32(bytes(block[20:]), LVM_SEED ^ 0xFFFFFFFF) ^ 0xFFFFFFFF)
    return {SECTOR: bytes(block)}


def vfat(size: int) -> dict[int, bytes]:
    block = bytearray(SECTOR)
    struct.pack_into("<3s8sHBHBHHBHHHII", block, 0, b"\xeb\x58\x90", b"mkfs.fat", 512, 8, 32, 2, 0, 0, 0xF8, 0,
                     32, 2, 0, size // SECTOR)  # fmt: skip
    struct.pack_into("<IHHIHH", block, 36, 1024, 0, 0, 2, 1, 6)
    struct.pack_into("<BBBI11s8s", block, 64, 0x80, 0, 0x29, 0x1234ABCD, b"BOOT       ", b"FAT32   ")
    block[510:512] = b"\x55\xaa"
    return {0: bytes(block)}


def dos_table(size: int) -> dict[int, bytes]:
    return {446: partition(0x83, 2048, size // SECTOR - 2048), 510: b"\x55\xaa"}


def partition(kind: int, start: int, sectors: int) -> bytes:
    return struct.pack("<B3sB3sII", 0, b"\0\2\0", kind, b"\xff\xff\xff", start, sectors)


def gpt(size: int) -> dict[int, bytes]:
    last = size // SECTOR - 1
    entry = uuid.UUID("0fc63daf-8483-4772-8e79-3d69d8477de4").bytes_le + uuid.UUID(int=10).bytes_le
    entries = (entry + struct.pack("<QQQ", 2048, last - 34, 0)).ljust(128 * 128, b"\0")
    return {
        446: partition(0xEE, 1, last),
        510: b"\x55\xaa",
        SECTOR: gpt_header(1, last, 2, last, entries),
        2 * SECTOR: entries,
        (last - 32) * SECTOR: entries,
        last * SECTOR: gpt_header(last, 1, last - 32, last, entries),
    }


def gpt_header(here: int, other: int, entries_at: int, last: int, entries: bytes) -> bytes:
    layout = "<8sIIIIQQQQ16sQIII"
    about = (here, other, 34, last - 33, uuid.UUID(int=11).bytes_le, entries_at, 128, 128, zlib.crc32(entries))
    checksum = zlib.crc32(struct.pack(layout, b"EFI PART", 0x10000, 92, 0, 0, *about))
    return struct.pack(layout, b"EFI PART", 0x10000, 92, checksum, 0, *about)


def gpt_at_the_end_only(size: int) -> dict[int, bytes]:
    """What is left when only the start of a partitioned disk was wiped."""
    return {position: data for position, data in gpt(size).items() if position > size // 2}
