"""Segments of etcd's log, built by hand, frame by frame."""

from __future__ import annotations

import struct
from pathlib import Path

from protokube.etcd.grpc import varint

METADATA, ENTRY, STATE, CRC, SNAPSHOT = 1, 2, 3, 4, 5
CLUSTER, MEMBER = 0xFEDCBA9876543210, 2**64 - 1
"""Both above the range of signed numbers, as half of etcd's ids are."""


def number(field: int, value: int) -> bytes:
    """etcd writes zeros as well."""
    return varint(field << 3) + varint(value)


def text(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def framed(record: bytes) -> bytes:
    padding = -len(record) % 8
    length = len(record) | ((0x80 | padding) << 56 if padding else 0)
    return struct.pack("<Q", length) + record + bytes(padding)


def frame(kind: int, data: bytes | None, crc: int = 0xDEADBEEF) -> bytes:
    return framed(number(1, kind) + number(2, crc) + (b"" if data is None else text(3, data)))


def metadata(cluster: int = CLUSTER, member: int = MEMBER) -> bytes:
    return frame(METADATA, number(1, member) + number(2, cluster))


def head(cluster: int = CLUSTER, member: int = MEMBER) -> bytes:
    """How every segment begins."""
    return frame(CRC, None, crc=0) + metadata(cluster, member)


def state(term: int, commit: int, vote: int = 2**63 + 5, crc: int = 0xDEADBEEF) -> bytes:
    return frame(STATE, number(1, term) + number(2, vote) + number(3, commit), crc)


def entry(index: int, term: int = 1, data: bytes = b"x" * 50, crc: int = 0xDEADBEEF) -> bytes:
    return frame(ENTRY, number(1, 0) + number(2, term) + number(3, index) + text(4, data), crc)


def snapshot(index: int, term: int = 1) -> bytes:
    """With a conf_state, as etcd 3.5 writes it."""
    voters = b"".join(number(1, 2**63 + each) for each in range(9))
    return frame(SNAPSHOT, number(1, index) + number(2, term) + text(3, voters))


def segment(folder: Path, sequence: int, first_index: int, *frames: bytes, preallocated: int = 64 * 1024) -> Path:
    """A segment file with zeros up to its preallocated size."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{sequence:016x}-{first_index:016x}.wal"
    path.write_bytes(b"".join(frames).ljust(preallocated, b"\0"))
    return path


def append(path: Path, at: int, content: bytes) -> int:
    """Write into the preallocated space; the offset after it."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)
    return at + len(content)
