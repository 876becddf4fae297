"""The hash of all keys at one revision from one member: etcdserverpb.Maintenance/HashKV."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

from protokube.errors import TryLater
from protokube.etcd import Hash
from protokube.etcd.deadline import Deadline
from protokube.etcd.dial import Target, dial
from protokube.etcd.grpc import NoMessage, unary, varint

METHOD = "/etcdserverpb.Maintenance/HashKV"
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def hash_at(target: Target, context: ssl.SSLContext | None, revision: int, deadline: Deadline) -> Hash:
    """Request the hash. TryLater if the member has not reached the revision yet, or has compacted it."""
    try:
        with dial(target, context, deadline) as connection:
            answer = unary(connection, target, METHOD, b"\x08" + varint(revision), deadline)
        return read_hash(answer, revision)
    except (NoMessage, ValueError) as error:
        raise TryLater(
            f"{target.authority} has no hash at revision {revision}",
            saw=str(error),
            want="a revision that it has reached and that is not compacted",
        ) from error
    except OSError as error:
        raise TryLater(f"{target.authority} did not answer", saw=str(error) or type(error).__name__) from error


def read_hash(message: bytes, revision: int) -> Hash:
    """Decode HashKVResponse: 1 header, 2 hash, 3 compact revision. Raises ValueError."""
    found = dict(fields(message))
    header = found.get(1)
    if not isinstance(header, bytes):
        raise ValueError("a reply without a header")
    ids = dict(fields(header))
    return Hash(
        cluster_id=_number(ids.get(1)),
        member_id=_number(ids.get(2)),
        hash=_number(found.get(2)),
        revision=revision,
        compacted=_signed(_number(found.get(3))),
    )


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message by number. Raises ValueError."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == VARINT:
            number, at = _varint(message, at)
            yield tag >> 3, number
            continue
        if kind == BYTES:
            size, at = _varint(message, at)
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
        else:
            raise ValueError(f"a field of an unknown wire type: {kind}")
        if at + size > len(message):
            raise ValueError("a truncated field")
        yield tag >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    number = 0
    for index, byte in enumerate(message[at : at + 10]):
        number |= (byte & 127) << (7 * index)
        if byte < 128:
            return number & (1 << 64) - 1, at + index + 1
    raise ValueError("a varint without an end")


def _number(value: int | bytes | None) -> int:
    """protobuf omits a field that is 0."""
    if isinstance(value, bytes):
        raise ValueError("bytes where a number belongs")
    return value or 0


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
