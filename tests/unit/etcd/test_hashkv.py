"""The hash at a revision, as etcd's own message has it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from protokube.etcd import Hash
from protokube.etcd.grpc import varint
from protokube.etcd.hashkv import fields, read_hash

steady = examples(300, derandomize=True)
U64, I64 = st.integers(0, 2**64 - 1), st.integers(-(2**63), 2**63 - 1)


def number(field: int, value: int) -> bytes:
    """A number that is 0 is left out, as etcd does it."""
    return varint(field << 3) + varint(value) if value else b""


def text(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def response(cluster: int, member: int, hashed: int, compacted: int) -> bytes:
    header = number(1, cluster) + number(2, member) + number(3, 21) + number(4, 2)
    return text(1, header) + number(2, hashed) + number(3, compacted)


@given(U64, U64, st.integers(0, 2**32 - 1), I64)
@steady
def test_every_hash_is_read_as_it_was_written(cluster: int, member: int, hashed: int, compacted: int) -> None:
    found = read_hash(response(cluster, member, hashed, compacted), 7)

    assert found == Hash(cluster_id=cluster, member_id=member, hash=hashed, revision=7, compacted=compacted)


def test_a_member_that_was_never_compacted_says_minus_one() -> None:
    assert read_hash(response(1, 2, 3, -1), 7).compacted == -1


def test_fields_of_a_later_version_are_passed_over() -> None:
    later = response(1, 2, 3, 4) + number(4, 99) + varint(5 << 3 | 1) + b"\0" * 8 + varint(6 << 3 | 5) + b"\0" * 4

    assert read_hash(later, 7).hash == 3


@given(st.binary(max_size=40))
@steady
def test_whatever_comes_in_is_read_or_refused(content: bytes) -> None:
    with suppress(ValueError):  # any other exception would fail the test
        assert read_hash(content, 7).revision == 7


@pytest.mark.parametrize(
    "broken",
    [b"", b"\x08", b"\x0a\x05ab", b"\x0b", b"\xff" * 11, text(2, b"hash"), text(1, b"") + text(2, b"text")],
    ids=["empty", "no number", "cut off", "unknown kind", "endless", "no header", "text for a number"],
)
def test_what_is_not_a_hash_is_an_error(broken: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_hash(broken, 7)


def test_fields_come_by_number() -> None:
    assert dict(fields(number(1, 300) + text(2, b"ab"))) == {1: 300, 2: b"ab"}
