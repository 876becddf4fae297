"""What a volume says of itself is read in full or not at all."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protokube.members.identity import Identity, Unreadable, decode, encode, mismatch
from unit.members.worlds import an_identity, tags

steady = settings(derandomize=True, deadline=None)
identities = st.builds(
    Identity,
    cluster=st.text(),
    etcd_cluster=st.text(),
    member=st.text(),
    volume=st.text(),
    generation=st.text(),
    epoch=st.integers(min_value=0),
    holder=st.text(),
)
FIELDS = sorted(asdict(an_identity()))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def written(**changes: Any) -> bytes:
    return json.dumps({**asdict(an_identity()), **changes}).encode()


@given(identities)
@steady
def test_what_was_written_is_read_back_the_same(identity: Identity) -> None:
    assert decode(encode(identity)) == identity


def test_the_file_is_json_that_a_person_can_read() -> None:
    text = encode(an_identity()).decode()

    assert text.endswith("\n")
    assert json.loads(text) == {**asdict(an_identity()), "version": 2}
    assert '\n  "epoch": 3,\n' in text


def test_equal_identities_are_the_same_bytes() -> None:
    assert encode(an_identity()) == encode(replace(an_identity()))


def test_every_truncated_file_is_unreadable() -> None:
    whole = encode(an_identity()).rstrip()

    for length in range(len(whole)):
        assert isinstance(decode(whole[:length]), Unreadable), length


@given(identities, st.data())
@steady
def test_half_of_any_file_is_unreadable(identity: Identity, data: st.DataObject) -> None:
    whole = encode(identity).rstrip()
    cut = data.draw(st.integers(min_value=0, max_value=len(whole) - 1))

    assert isinstance(decode(whole[:cut]), Unreadable)


@given(st.binary(max_size=200))
@steady
def test_garbage_is_unreadable_and_never_an_exception(garbage: bytes) -> None:
    assert isinstance(decode(garbage), Unreadable)


@given(json_values)
@steady
def test_other_json_is_unreadable(document: Any) -> None:
    assert isinstance(decode(json.dumps(document).encode()), Unreadable)


@given(st.integers(min_value=0, max_value=400), st.integers(min_value=0, max_value=255))
@steady
def test_a_flipped_byte_is_never_an_exception(where: int, byte: int) -> None:
    data = bytearray(encode(an_identity()))
    data[where % len(data)] = byte

    assert isinstance(decode(bytes(data)), Identity | Unreadable)


@pytest.mark.parametrize("data", [b"", b"\0" * 4096, b"\xff\xfe", b"null", b"[]", b'"dev"', b"{}", b"3", b"NaN"])
def test_a_file_that_holds_no_identity_says_why(data: bytes) -> None:
    read = decode(data)

    assert isinstance(read, Unreadable)
    assert read.why


def test_brackets_without_end_are_unreadable_and_exhaust_nothing() -> None:
    assert isinstance(decode(b"[" * 200_000), Unreadable)
    assert isinstance(decode(b'{"a":' * 200_000), Unreadable)


def test_a_number_too_long_to_read_is_unreadable() -> None:
    assert isinstance(decode(written().replace(b": 3", b": " + b"9" * 10_000)), Unreadable)


@pytest.mark.parametrize("field", FIELDS)
def test_a_missing_field_is_never_filled_in(field: str) -> None:
    document = asdict(an_identity())
    del document[field]

    read = decode(json.dumps(document).encode())

    assert isinstance(read, Unreadable)
    assert field in read.why


FIRST_FORM = b"""\
{
  "cluster": "dev",
  "epoch": 3,
  "etcd_cluster": "main",
  "generation": "g1",
  "holder": "i-1",
  "member": "a",
  "volume": "vol-a"
}
"""
"""As version 1 wrote it, which had no version in it."""


def test_a_file_of_version_1_is_still_read() -> None:
    assert decode(FIRST_FORM) == an_identity()


def test_a_file_of_version_1_is_written_again_as_version_2() -> None:
    read = decode(FIRST_FORM)

    assert isinstance(read, Identity)
    assert json.loads(encode(read)) == {**json.loads(FIRST_FORM), "version": 2}


def test_a_newer_version_is_unreadable_and_named_whatever_else_it_holds() -> None:
    for extra in ({}, {"seal": "x"}):
        read = decode(written(version=3, **extra))

        assert read == Unreadable("version 3 is of a newer protokube, this one reads up to 2")


@pytest.mark.parametrize("version", [None, "2", 2.0, True, [], 0, -1])
def test_a_version_that_is_no_count_is_unreadable_and_named(version: Any) -> None:
    assert decode(written(version=version)) == Unreadable(f"invalid version {version!r}")


@pytest.mark.parametrize("field", FIELDS)
def test_a_missing_field_of_version_2_is_never_filled_in(field: str) -> None:
    document = json.loads(encode(an_identity()))
    del document[field]

    read = decode(json.dumps(document).encode())

    assert isinstance(read, Unreadable)
    assert field in read.why


def test_an_extra_field_is_from_somebody_else() -> None:
    assert isinstance(decode(written(owner="another tool")), Unreadable)


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_that_is_said_twice_is_not_believed(field: str) -> None:
    twice = encode(an_identity()).rstrip().removesuffix(b"}") + f', "{field}": 1}}'.encode()

    assert isinstance(decode(twice), Unreadable)


@pytest.mark.parametrize("value", [None, True, 1, 1.5, [], {}, ["dev"]])
@pytest.mark.parametrize("field", [field for field in FIELDS if field != "epoch"])
def test_a_name_of_another_type_is_unreadable_and_named(field: str, value: Any) -> None:
    read = decode(written(**{field: value}))

    assert read == Unreadable(f"invalid value of {field}")


@pytest.mark.parametrize("value", [None, True, False, "3", 3.0, [], {}, -1])
def test_an_epoch_that_is_no_count_is_unreadable_and_named(value: Any) -> None:
    assert decode(written(epoch=value)) == Unreadable("invalid value of epoch")


def test_every_wrong_field_is_named_at_once() -> None:
    read = decode(written(cluster=1, holder=None))

    assert read == Unreadable("invalid value of cluster, holder")


@given(identities, st.text(), st.integers(min_value=0))
@steady
def test_a_takeover_raises_the_epoch_above_both_and_changes_only_the_hands(
    identity: Identity, holder: str, seen: int
) -> None:
    taken = identity.taken_over_by(holder, seen)

    assert taken.epoch > identity.epoch
    assert taken.epoch > seen
    assert taken.holder == holder
    assert replace(taken, epoch=identity.epoch, holder=identity.holder) == identity


def test_taking_over_from_oneself_raises_the_epoch_too() -> None:
    assert an_identity().taken_over_by("i-1").epoch == 4


def test_a_disk_that_says_what_its_tags_say_does_not_contradict_them() -> None:
    assert mismatch(an_identity(), tags()) is None


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("cluster", "the disk says cluster 'other', its tags say 'dev'"),
        ("etcd_cluster", "the disk says etcd cluster 'other', its tags say 'main'"),
        ("member", "the disk says member 'other', its tags say 'a'"),
        ("volume", "the disk says volume 'other', its tags say 'vol-a'"),
    ],
)
def test_a_disk_that_contradicts_its_tags_says_how(field: str, expected: str) -> None:
    identity = Identity(**{**asdict(an_identity()), field: "other"})

    assert mismatch(identity, tags()) == expected


@pytest.mark.parametrize("change", [{"generation": "g2"}, {"epoch": 99}, {"holder": "i-2"}])
def test_tags_know_nothing_of_generation_epoch_and_holder(change: dict[str, Any]) -> None:
    assert mismatch(Identity(**{**asdict(an_identity()), **change}), tags()) is None


@given(identities, identities)
@steady
def test_no_contradiction_means_equal_in_all_that_tags_say(disk: Identity, other: Identity) -> None:
    nominated = replace(
        tags(), cluster=other.cluster, etcd_cluster=other.etcd_cluster, member=other.member, volume=other.volume
    )
    same = [getattr(disk, name) == getattr(nominated, name) for name in ("cluster", "etcd_cluster", "member", "volume")]

    assert (mismatch(disk, nominated) is None) == all(same)
