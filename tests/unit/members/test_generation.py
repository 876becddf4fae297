"""The generation record: what cannot be read in full is closed, and open needs two positive answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protokube.members.generation import Accepted, Generation, decode, encode, is_open, is_unformed, is_untouched
from protokube.members.removal import Lacking, Readded
from unit.members.worlds import FOUNDERS, a_generation

steady = settings(derandomize=True, deadline=None)
words = st.text(min_size=1)
counts = st.integers(min_value=0)
times = st.floats(min_value=0, allow_infinity=False)
generations = st.builds(
    Generation,
    id=words,
    etcd_cluster=words,
    token=words,
    founders=st.dictionaries(words, words, max_size=5),
    replacements=st.dictionaries(words, words, max_size=5),
    open=st.booleans(),
    superseded=st.dictionaries(words, words, max_size=2),
    rejoined=st.dictionaries(words, words, max_size=2),
    accepted=st.dictionaries(words, st.builds(Accepted, epoch=counts, term=counts, commit=counts), max_size=2),
    lacking=st.dictionaries(
        words, st.builds(Lacking, member_id=counts, since=times, observed=times, meant=st.booleans()), max_size=2
    ),
    readded=st.dictionaries(words, st.builds(Readded, member_id=counts, at=times), max_size=2),
)
FIRST_FIELDS = ["etcdCluster", "founders", "id", "open", "replacements", "token"]
FIELDS = [*FIRST_FIELDS, "accepted", "rejoined", "superseded"]
OPEN_MARKS = ["", "forming", "formatting:5f1c"]
OTHER_MARKS = [None, "formed", "Formed", "forming ", "formatting", "open", "true", "?"]


def written(**changes: Any) -> bytes:
    return json.dumps({**json.loads(encode(a_generation(is_open=True))), **changes}).encode()


@given(generations)
@steady
def test_what_was_written_is_read_back_the_same(generation: Generation) -> None:
    assert decode(encode(generation)) == generation


def test_the_record_says_its_fields_as_a_person_expects_them() -> None:
    assert json.loads(encode(a_generation(is_open=True, replacements={"a": "vol-a2"}))) == {
        "id": "g1",
        "etcdCluster": "main",
        "token": "token-1",
        "founders": FOUNDERS,
        "replacements": {"a": "vol-a2"},
        "open": True,
        "superseded": {},
        "rejoined": {},
        "accepted": {},
        "version": 2,
    }


FIRST_FORM = b"""\
{
  "etcdCluster": "main",
  "founders": {
    "a": "vol-a",
    "b": "vol-b",
    "c": "vol-c"
  },
  "id": "g1",
  "open": true,
  "replacements": {},
  "token": "token-1"
}
"""
"""As version 1 wrote it, which had no version in it."""


def test_a_record_of_version_1_is_still_read() -> None:
    assert decode(FIRST_FORM) == a_generation(is_open=True)


@pytest.mark.parametrize("field", FIRST_FIELDS)
def test_a_missing_field_of_version_1_is_never_filled_in(field: str) -> None:
    document = json.loads(FIRST_FORM)
    del document[field]

    assert decode(json.dumps(document).encode()) is None


@pytest.mark.parametrize("field", ["accepted", "rejoined", "superseded"])
def test_half_of_version_2_in_a_record_without_a_version_is_not_believed(field: str) -> None:
    assert decode(json.dumps({**json.loads(FIRST_FORM), field: {}}).encode()) is None


@pytest.mark.parametrize("version", [3, 99, 0, -1, None, "2", 2.0, True])
def test_a_record_of_a_newer_or_impossible_version_is_nothing_and_so_closed(version: Any) -> None:
    assert decode(written(version=version)) is None


@pytest.mark.parametrize(
    "value",
    [
        None, [], {"vol-a": None}, {"vol-a": {}}, {"": {"epoch": 1, "term": 1, "commit": 1}},
        {"vol-a": {"epoch": 1, "term": 1}}, {"vol-a": {"epoch": 1, "term": 1, "commit": 1, "x": 1}},
        {"vol-a": {"epoch": -1, "term": 1, "commit": 1}}, {"vol-a": {"epoch": True, "term": 1, "commit": 1}},
        {"vol-a": {"epoch": "1", "term": 1, "commit": 1}}, {"vol-a": {"epoch": 1.0, "term": 1, "commit": 1}},
    ],
)  # fmt: skip
def test_an_acceptance_names_a_volume_and_all_three_figures(value: Any) -> None:
    assert decode(written(accepted=value)) is None


def test_an_acceptance_is_for_one_volume_and_is_taken_back_alone() -> None:
    one, other = Accepted(epoch=1, term=2, commit=3), Accepted(epoch=4, term=5, commit=6)

    both = a_generation().with_accepted("vol-a", one).with_accepted("vol-b", other)

    assert both.without_accepted("vol-a").accepted == {"vol-b": other}
    assert both.without_accepted("vol-x") == both
    assert decode(encode(both)) == both


def test_what_is_recorded_later_leaves_the_rest_as_it_is() -> None:
    record = a_generation().with_superseded("vol-a", "a").with_rejoined("b", "vol-b: epoch 1")

    again = record.with_replacement("a", "vol-a2").closed()

    assert (again.superseded, again.rejoined) == ({"vol-a": "a"}, {"b": "vol-b: epoch 1"})
    assert again.volume_of("a") == "vol-a2"
    assert decode(encode(again)) == again


def test_every_truncated_record_is_nothing_and_so_closed() -> None:
    whole = encode(a_generation(is_open=True)).rstrip()

    for length in range(len(whole)):
        assert decode(whole[:length]) is None, length


@given(generations, st.data())
@steady
def test_half_of_any_record_is_nothing(generation: Generation, data: st.DataObject) -> None:
    whole = encode(generation).rstrip()
    cut = data.draw(st.integers(min_value=0, max_value=len(whole) - 1))

    assert decode(whole[:cut]) is None


@given(st.binary(max_size=200))
@steady
def test_garbage_is_nothing_and_never_an_exception(garbage: bytes) -> None:
    assert decode(garbage) is None


@pytest.mark.parametrize("data", [b"", b"\0" * 4096, b"null", b"true", b"[]", b'"open"', b"{}", b'{"open": true}'])
def test_a_file_that_holds_no_record_is_nothing(data: bytes) -> None:
    assert decode(data) is None


def test_brackets_without_end_are_nothing_and_exhaust_nothing() -> None:
    assert decode(b"[" * 200_000) is None
    assert decode(b'{"founders":' * 200_000) is None


@pytest.mark.parametrize("field", FIELDS)
def test_a_missing_field_is_never_filled_in(field: str) -> None:
    document = json.loads(encode(a_generation(is_open=True)))
    del document[field]

    assert decode(json.dumps(document).encode()) is None


def test_an_extra_field_is_from_somebody_who_knows_more_and_so_closed() -> None:
    assert decode(written(closedAt="2026-01-01")) is None


def test_a_record_that_says_closed_and_then_open_is_not_believed() -> None:
    twice = written(open=False).removesuffix(b"}") + b', "open": true}'

    assert decode(twice) is None


def test_a_member_with_two_founding_volumes_is_not_believed() -> None:
    twice = written().replace(b'"a": "vol-a"', b'"a": "vol-a", "a": "vol-x"')

    assert decode(twice) is None


@pytest.mark.parametrize("value", [None, "true", "", 1, 0, [], {}])
def test_open_is_a_plain_yes_or_no(value: Any) -> None:
    assert decode(written(open=value)) is None


@pytest.mark.parametrize("value", [None, "", 1, True, [], {}])
@pytest.mark.parametrize("field", ["id", "etcdCluster", "token"])
def test_a_name_is_a_text_with_something_in_it(field: str, value: Any) -> None:
    assert decode(written(**{field: value})) is None


@pytest.mark.parametrize(
    "value", [None, "vol-a", [], ["vol-a"], {"a": None}, {"a": ""}, {"": "vol-a"}, {"a": 1}, {"a": ["vol-a"]}]
)
@pytest.mark.parametrize("field", ["founders", "replacements", "superseded", "rejoined"])
def test_volumes_are_named_by_member(field: str, value: Any) -> None:
    assert decode(written(**{field: value})) is None


@pytest.mark.parametrize("mark", OPEN_MARKS)
def test_creation_is_open_when_store_and_provider_both_say_so(mark: str) -> None:
    assert is_open(a_generation(is_open=True), mark) is True


@pytest.mark.parametrize("mark", [*OPEN_MARKS, *OTHER_MARKS])
@pytest.mark.parametrize("generation", [None, a_generation(is_open=False)], ids=["unreadable", "closed"])
def test_creation_is_closed_when_the_store_does_not_say_open(generation: Generation | None, mark: str | None) -> None:
    assert is_open(generation, mark) is False


@pytest.mark.parametrize("mark", OTHER_MARKS)
def test_creation_is_closed_when_the_provider_does_not_say_open(mark: str | None) -> None:
    assert is_open(a_generation(is_open=True), mark) is False


@given(st.none() | generations, st.none() | st.sampled_from(OPEN_MARKS) | st.text())
@steady
def test_one_yes_is_never_enough(generation: Generation | None, mark: str | None) -> None:
    store = generation is not None and generation.open
    provider = mark is not None and (mark in ("", "forming") or mark.startswith("formatting:"))

    assert is_open(generation, mark) == (store and provider)


def test_a_volume_is_untouched_until_it_is_marked_forming_and_unformed_until_formed() -> None:
    life = ["", "formatting:5f1c", "forming", "formed"]

    assert [is_untouched(mark) for mark in life] == [True, True, False, False]
    assert [is_unformed(mark) for mark in life] == [True, True, True, False]
    assert not is_untouched(None)
    assert not is_unformed(None)


@given(generations)
@steady
def test_closing_changes_nothing_else_and_is_never_undone(generation: Generation) -> None:
    closed = generation.closed()

    assert not closed.open
    assert (closed.id, closed.token, closed.founders) == (generation.id, generation.token, generation.founders)
    assert closed.closed() == closed
    assert not closed.with_replacement("a", "vol-a2").open
    assert not is_open(closed, "")


def test_a_founder_is_this_member_on_this_volume() -> None:
    generation = a_generation()

    assert generation.is_founder("a", "vol-a")
    assert not generation.is_founder("a", "vol-b")
    assert not generation.is_founder("b", "vol-a")
    assert not generation.is_founder("d", "vol-d")


def test_we_made_the_founders_and_the_replacements_and_nothing_else() -> None:
    generation = a_generation(replacements={"a": "vol-a2", "d": "vol-d"})

    assert generation.made_by_us("a", "vol-a")
    assert generation.made_by_us("a", "vol-a2")
    assert generation.made_by_us("d", "vol-d")
    assert not generation.made_by_us("b", "vol-a2")
    assert not generation.made_by_us("a", "vol-a3")
    assert not generation.made_by_us("e", "")


def test_a_replacement_is_ours_and_never_a_founder() -> None:
    replaced = a_generation(is_open=True).with_replacement("a", "vol-a2")

    assert replaced.made_by_us("a", "vol-a2")
    assert not replaced.is_founder("a", "vol-a2")


def test_a_second_replacement_takes_the_place_of_the_first() -> None:
    replaced = a_generation().with_replacement("a", "vol-a2").with_replacement("b", "vol-b2")
    again = replaced.with_replacement("a", "vol-a3")

    assert again.replacements == {"a": "vol-a3", "b": "vol-b2"}
    assert not again.made_by_us("a", "vol-a2")
    assert replaced.replacements == {"a": "vol-a2", "b": "vol-b2"}


def test_a_record_without_removed_members_is_written_so_that_former_agents_read_it() -> None:
    assert json.loads(encode(a_generation()))["version"] == 2
    removed = a_generation().with_lacking("b", Lacking(member_id=7, since=1.0, observed=2.0))
    document = json.loads(encode(removed))
    assert document["version"] == 3
    assert document["lacking"] == {"b": {"member_id": 7, "since": 1.0, "observed": 2.0, "meant": False}}
    assert decode(encode(removed.without_lacking("b"))) == a_generation()
    readded = a_generation().with_readded("b", Readded(member_id=7, at=3.0))
    assert json.loads(encode(readded))["readded"] == {"b": {"member_id": 7, "at": 3.0}}


@pytest.mark.parametrize(
    "lacking",
    [
        {"b": {"member_id": 7, "since": 1.0, "observed": 2.0}},
        {"b": {"member_id": 7, "since": -1.0, "observed": 2.0, "meant": False}},
        {"b": {"member_id": 7, "since": 1.0, "observed": float("nan"), "meant": False}},
        {"b": {"member_id": 7, "since": 1.0, "observed": 2, "meant": False}},
        {"b": {"member_id": 7, "since": 1.0, "observed": 2.0, "meant": 0}},
        {"b": 7},
        [],
    ],
)
def test_a_count_that_cannot_be_read_in_full_makes_the_record_unreadable(lacking: Any) -> None:
    assert decode(written(version=3, lacking={}, readded={})) is not None
    assert decode(written(version=3, lacking=lacking, readded={})) is None
    assert decode(written(version=2, lacking={}, readded={})) is None
