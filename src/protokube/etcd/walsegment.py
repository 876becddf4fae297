"""Walk the frames of one segment file of etcd's write-ahead log.

A frame is a little-endian 64-bit length (56 bits of size; if the top bit is set, bits 56 to 58 count the padding), a
protobuf record (type, crc, data) and the padding. A length of zero ends what was written: segments are preallocated.

The hard part is a frame that is only partly written, because etcd was killed or is writing it right now. The missing
part reads as zeros. Checksums run over the whole log and are not computed here; instead a record must fill its frame
exactly, a message must fill its record exactly, and numbers must be in their shortest form. Zeros in the place of a
record or at the end of a number break one of these rules. What they cannot show is a lost last byte of a small commit
index, which reads as commit 0; since term and commit never fall in a log, the highest of each counts.

Files are read with pread: a mapped file on a failing disk would end the process with SIGBUS.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

METADATA, ENTRY, STATE, CRC, SNAPSHOT = 1, 2, 3, 4, 5
RECORD_TYPES = frozenset({METADATA, ENTRY, STATE, CRC, SNAPSHOT})

LENGTH = struct.Struct("<Q")
SIZE_MASK = (1 << 56) - 1
CHUNK = 256 * 1024
HEAD = 128
"""Enough for the length, a record's fields before its data, and the whole of a metadata or state message."""
FEW = 8
"""Entries whose place is remembered: more than one power cut tears."""
MESSAGE = 64
"""Longest metadata or state message; three numbers take at most 33 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """What the frames of one segment hold, up to `offset`."""

    offset: int = 0
    """Of the first frame that was not walked."""
    anchor: int = 0
    """Offset of the last frame that was walked."""
    anchor_bytes: bytes = b""
    """Its head, with its checksum: equal bytes mean that etcd has not cut the log before `offset` since."""
    identities: frozenset[tuple[int, int]] = frozenset()
    """Cluster id and member id of each metadata record; more than one pair is a contradiction."""
    hard_state: tuple[int, int] | None = None
    """Term and commit of the last hard state; neither falls from one to the next."""
    last_index: int = 0
    entries: tuple[int, ...] = ()
    """Offsets of the last entries' data since the last snapshot; etcd may still have been writing the newest."""


class Frame(NamedTuple):
    """One frame whose record fills it."""

    at: int
    following: int
    """Offset of the next frame."""
    kind: int
    data: int
    """Offset of the record's data."""
    head: bytes
    """The bytes before the data."""
    message: bytes
    """The beginning of the data; entries are skipped and have none here."""


def walk(file: int, walked: Walked, *, only_identity: bool = False) -> Walked:
    """Go on from `walked` to the end of what is written; `only_identity` stops after the first metadata."""
    identities, hard_state, last_index = walked.identities, walked.hard_state, walked.last_index
    entries, last = deque(walked.entries, maxlen=FEW), None
    for frame in _frames(file, walked.offset):
        try:
            if frame.kind == ENTRY:
                entries.append(frame.data)
            elif frame.kind == STATE:
                numbers = _numbers(frame.message)
                term, commit = hard_state or (0, 0)
                hard_state = max(term, numbers.get(1, 0)), max(commit, numbers.get(3, 0))
            elif frame.kind == METADATA:
                numbers = _numbers(frame.message)
                identities |= {(numbers.get(2, 0), numbers.get(1, 0))}
            elif frame.kind == SNAPSHOT:
                last_index = max(_index(file, entries, last_index), _leading_numbers(frame.message).get(1, 0))
                entries.clear()
        except (ValueError, IndexError):
            break  # a torn record
        last = frame
        if only_identity and identities:
            break
    last_index = _index(file, entries, last_index)
    if last is None:
        return replace(walked, last_index=last_index)
    return Walked(
        offset=last.following,
        anchor=last.at,
        anchor_bytes=last.head,
        identities=identities,
        hard_state=hard_state,
        last_index=last_index,
        entries=tuple(entries),
    )


def _frames(file: int, at: int) -> Iterator[Frame]:
    """The frames from this offset on, up to one that is not complete."""
    end = os.fstat(file).st_size
    base, window = at, b""
    while at + LENGTH.size <= end:
        if at + HEAD > base + len(window) and base + len(window) < end:
            window, base = os.pread(file, CHUNK, at), at
        start = at - base + LENGTH.size
        if start > len(window):
            return  # the file shrank while it was read
        (length,) = LENGTH.unpack_from(window, at - base)
        size, padding = length & SIZE_MASK, length >> 56 & 7 if length >> 63 else 0
        following = at + LENGTH.size + size + padding
        if length == 0 or following > end:
            return
        try:
            kind, data = _record(window, start, start + size)
        except (ValueError, IndexError):
            return
        message = b"" if kind == ENTRY else window[data : min(start + size, data + MESSAGE + 1)]
        yield Frame(at, following, kind, base + data, window[at - base : data], message)
        at = following


def still_there(file: int, walked: Walked) -> bool:
    """Whether the file still holds the last frame that was walked; etcd cuts a torn tail when it starts."""
    return os.pread(file, len(walked.anchor_bytes), walked.anchor) == walked.anchor_bytes


def _record(window: bytes, start: int, stop: int) -> tuple[int, int]:
    """The type of a record and where its data begin. Raises ValueError or IndexError if it does not fill its frame."""
    kind = window[start + 1]
    if window[start] != 0x08 or kind not in RECORD_TYPES or window[start + 2] != 0x10:
        raise ValueError("not a record")
    _, at = _varint(window, start + 3)
    size = 0
    if at != stop:
        if window[at] != 0x1A:
            raise ValueError("not the data of a record")
        size, at = _varint(window, at + 1)
    if at + size != stop:
        raise ValueError("the data do not fill the record")
    return kind, at


def _index(file: int, entries: Collection[int], known: int) -> int:
    """The index of the last of these entries that can be read: a torn one was never acknowledged, those before it were.

    An index below `known` is right: raft cuts an uncommitted tail by writing its place again.
    """
    for entry in reversed(tuple(entries)):
        if index := _leading_numbers(os.pread(file, MESSAGE, entry)).get(3, 0):
            return index
    return known


def _numbers(message: bytes) -> dict[int, int]:
    """The fields of a message that has only numbers."""
    if len(message) > MESSAGE:
        raise ValueError("longer than any message of its type")
    numbers, at = {}, 0
    while at < len(message):
        tag, at = _varint(message, at)
        if tag < 8 or tag & 7:
            raise ValueError("not a number")
        numbers[tag >> 3], at = _varint(message, at)
    return numbers


def _leading_numbers(message: bytes) -> dict[int, int]:
    """The numbers at the beginning of a message, as far as they can be read; more may follow."""
    numbers, at = {}, 0
    try:
        while at < len(message):
            tag, at = _varint(message, at)
            if tag < 8 or tag & 7:
                break
            numbers[tag >> 3], at = _varint(message, at)
    except (ValueError, IndexError):
        pass
    return numbers


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends. Raises ValueError, or IndexError at the end of the data."""
    byte = data[at]
    if byte < 128:
        return byte, at + 1
    number, shift = byte & 127, 7
    while shift < 70:
        at += 1
        byte = data[at]
        number |= (byte & 127) << shift
        if byte < 128:
            if byte == 0 or number >> 64:
                raise ValueError("not the shortest form of a 64-bit number")
            return number, at + 1
        shift += 7
    raise ValueError("a number without an end")
