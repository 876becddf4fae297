"""etcd's JSON becomes our values: numbers are text there, bytes base64, and zeros are left out."""

from __future__ import annotations

from base64 import b64decode

from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from protokube.etcd import Alarm, KeyValue, Status
from protokube.etcd.messages import alarms, from_wire, key_value, list_of_members, listed, prefix_range, status, to_wire
from protokube.members.start_values import Listed

steady = examples(300, derandomize=True)
HEADER = {"cluster_id": "17406247293755919242", "member_id": "8509071051766952914", "revision": "7", "raft_term": "2"}


def test_numbers_beyond_what_a_float_holds_are_read_exactly() -> None:
    found = status({"header": HEADER, "leader": "18446744073709551615", "dbSize": "20480"})

    assert found.cluster_id == 17406247293755919242
    assert found.leader == 2**64 - 1


def test_what_a_status_leaves_out_is_zero() -> None:
    found = status({"header": HEADER, "version": "3.5.1", "errors": ["etcdserver: no leader"]})

    assert found == Status(
        cluster_id=17406247293755919242,
        member_id=8509071051766952914,
        leader=0,
        revision=7,
        raft_term=0,
        raft_index=0,
        applied_index=0,
        db_size=0,
        version="3.5.1",
        learner=False,
        errors=("etcdserver: no leader",),
    )


def test_a_learner_says_that_it_is_one() -> None:
    assert status({"header": HEADER, "isLearner": True}).learner
    assert listed({"ID": "5", "isLearner": True}).learner


def test_a_member_that_was_added_and_never_started_has_no_name_and_no_client_urls() -> None:
    found = listed({"ID": "9400958384018454334", "peerURLs": ["https://etcd-d:2380"], "isLearner": True})

    assert found == Listed(
        id=9400958384018454334, name="", peer_urls=("https://etcd-d:2380",), client_urls=(), learner=True
    )
    assert not found.started


def test_members_come_sorted_by_id_and_not_by_its_text() -> None:
    document = {"members": [{"ID": "100", "name": "c"}, {"ID": "20", "name": "b"}, {"ID": "3", "name": "a"}]}

    assert [each.name for each in list_of_members(document)] == ["a", "b", "c"]
    assert list_of_members({}) == ()


def test_a_key_value_without_a_value_or_a_lease_is_empty_and_free() -> None:
    document = {"key": to_wire("a/b"), "mod_revision": "4"}

    assert key_value(document) == KeyValue(key="a/b", value="", lease=0, mod_revision=4)
    assert key_value(document | {"value": to_wire("x"), "lease": "77"}).lease == 77


@given(st.binary(max_size=30))
@steady
def test_whatever_is_in_etcd_comes_through_as_text_and_goes_back_as_it_was(raw: bytes) -> None:
    text = raw.decode(errors="surrogateescape")

    assert from_wire(to_wire(text)) == text
    assert b64decode(to_wire(text)) == raw


@given(st.binary(max_size=4), st.binary(max_size=6))
@steady
def test_a_prefix_covers_exactly_the_keys_that_begin_with_it(prefix: bytes, key: bytes) -> None:
    found = prefix_range(prefix.decode(errors="surrogateescape"))
    start, end = b64decode(found["key"]), b64decode(found["range_end"])
    to_the_end = end == b"\0"  # etcd's way to say "everything from here on"
    key = key or b"k"  # etcd has no empty key

    assert (key >= start and (to_the_end or key < end)) == key.startswith(prefix)


def test_alarms_are_read_sorted_and_none_is_nothing() -> None:
    document = {"alarms": [{"memberID": "7", "alarm": "NOSPACE"}, {"memberID": "2", "alarm": "CORRUPT"}]}

    assert alarms(document) == (Alarm(2, "CORRUPT"), Alarm(7, "NOSPACE"))
    assert alarms({}) == ()


def test_a_status_says_how_much_of_the_database_is_in_use_and_since_3_6_its_quota() -> None:
    document = {"header": {"cluster_id": "1", "member_id": "2"}, "dbSize": "9", "dbSizeInUse": "5", "dbSizeQuota": "20"}

    found = status(document)

    assert (found.db_size, found.db_size_in_use, found.quota) == (9, 5, 20)
