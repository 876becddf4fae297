"""The rollout record: what is written is read back, and what cannot be read in full is not read at all."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from protokube.launch.rollout import EVENTS, Event, Failure, Rollout, State, Turn, decode, encode

names, times = st.text(max_size=8), st.floats(0, 4e9)
turns = st.builds(Turn, machine=names, name=names, at=times)
failures = st.builds(Failure, machine=names, name=names, revision=st.integers(1, 10**6), text=names)
events = st.builds(Event, at=times, machine=names, text=names)
records = st.builds(
    Rollout,
    wanted=st.integers(1, 10**6),
    before=st.integers(0, 10**6),
    state=st.sampled_from(State),
    turn=st.none() | turns,
    failure=st.none() | failures,
    events=st.lists(events, max_size=3).map(tuple),
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
trees = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2))
TURN = Turn(machine="i-1", name="master-a", at=10.0)
FAILURE = Failure(machine="i-1", name="master-a", revision=3, text="etcd: it does not run")


def a_record(**fields: Any) -> Rollout:
    return Rollout(**{"wanted": 2, "before": 1, "state": State.ROLLING, **fields})


def a_tree(**fields: Any) -> dict[str, Any]:
    return {**json.loads(encode(a_record(turn=TURN, failure=FAILURE))), **fields}


@given(records)
@examples(100)
def test_a_record_is_read_back_with_its_whole_timeline(record: Rollout) -> None:
    found = decode(encode(record))

    assert found == record
    assert found.events == record.events


@given(records)
@examples(50)
def test_equal_records_have_equal_bytes(record: Rollout) -> None:
    found = decode(encode(record))

    assert found is not None
    assert encode(found) == encode(record)


@given(st.binary(max_size=40) | trees.map(lambda tree: json.dumps(tree).encode()))
@examples(200)
def test_whatever_else_is_in_its_place_is_no_record_and_no_error(data: bytes) -> None:
    assert decode(data) is None


@given(st.sampled_from(sorted(a_tree().keys() - {"events"})), trees)
@examples(300)
def test_a_record_with_another_value_in_one_field_is_the_same_again_or_none(field: str, value: Any) -> None:
    data = json.dumps(a_tree(**{field: value})).encode()
    found = decode(data)

    assert found is None or json.loads(encode(found)) == json.loads(data)


@given(st.sampled_from(["turn", "failure"]), st.data())
@examples(100)
def test_a_turn_or_failure_with_another_value_in_one_field_is_the_same_again_or_none(
    part: str, data: st.DataObject
) -> None:
    tree = a_tree()
    tree[part][data.draw(st.sampled_from(sorted(tree[part])))] = data.draw(trees)
    written = json.dumps(tree).encode()
    found = decode(written)

    assert found is None or json.loads(encode(found)) == json.loads(written)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
        json.dumps(a_tree(wanted=0)).encode(),
        json.dumps(a_tree(before=-1)).encode(),
        json.dumps(a_tree(wanted="2")).encode(),
        json.dumps(a_tree(wanted=2.5)).encode(),
        json.dumps(a_tree(wanted=True)).encode(),
        json.dumps(a_tree(wanted=float("inf"))).encode(),
        json.dumps(a_tree(wanted=float("nan"))).encode(),
        json.dumps(a_tree(state="paused")).encode(),
        json.dumps(a_tree(turn={})).encode(),
        json.dumps(a_tree(turn={"machine": "i-1"})).encode(),
        json.dumps(a_tree(turn={**a_tree()["turn"], "until": 4})).encode(),
        json.dumps(a_tree(turn={**a_tree()["turn"], "machine": None})).encode(),
        json.dumps(a_tree(turn=False)).encode(),
        json.dumps(a_tree(failure=[])).encode(),
        json.dumps(a_tree(events=None)).encode(),
        json.dumps(a_tree(events=[{}])).encode(),
        json.dumps({"wanted": 2, "state": "done"}).encode(),
    ],
)
def test_a_record_that_is_damaged_is_not_read_in_part(data: bytes) -> None:
    assert decode(data) is None


def test_a_cut_off_record_is_none_wherever_it_ends() -> None:
    whole = encode(a_record(turn=TURN, failure=FAILURE).noted(1.0, "master-a", "takes it")).rstrip()

    assert [length for length in range(len(whole)) if decode(whole[:length]) is not None] == []
    assert decode(whole) is not None


@pytest.mark.parametrize(
    ("state", "before", "expected"),
    [
        (State.DONE, 1, 2),
        (State.DONE, 0, 2),
        (State.ROLLING, 1, 1),
        (State.STOPPED, 1, 1),
        (State.ROLLING, 0, 2),
        (State.STOPPED, 0, 2),
    ],
)
def test_a_machine_boots_with_the_last_revision_that_all_ran_if_there_is_one(
    state: State, before: int, expected: int
) -> None:
    assert a_record(state=state, before=before).at_boot() == expected


def test_a_revision_put_in_force_after_one_that_all_run_has_that_one_before_it() -> None:
    begun = a_record(state=State.DONE).begun(3, 7.0, "anna@laptop")

    assert begun == Rollout(wanted=3, before=2, state=State.ROLLING)
    assert begun.events[-1] == Event(at=7.0, machine="", text="revision 3 put in force by anna@laptop")


@pytest.mark.parametrize("state", [State.ROLLING, State.STOPPED])
def test_a_revision_put_in_force_over_one_that_not_all_ran_keeps_the_one_before(state: State) -> None:
    record = a_record(state=state, failure=FAILURE if state is State.STOPPED else None)

    assert record.begun(3, 7.0, "anna") == Rollout(wanted=3, before=1, state=State.ROLLING)
    assert record.begun(3, 7.0, "anna").begun(4, 8.0, "bert").before == 1


@pytest.mark.parametrize("state", State)
def test_a_turn_under_way_outlives_a_new_revision(state: State) -> None:
    assert a_record(state=state, turn=TURN).begun(3, 7.0, "anna").turn == TURN


def test_the_same_revision_rolls_again_after_it_stopped() -> None:
    stopped = a_record(wanted=3, turn=TURN).stopped(FAILURE, 9.0)
    again = stopped.begun(3, 10.0, "anna")

    assert (stopped.state, stopped.turn, stopped.failure) == (State.STOPPED, TURN, FAILURE)
    assert (again.wanted, again.before, again.state, again.failure) == (3, 1, State.ROLLING, None)


def test_a_rollout_leads_from_turn_to_turn_to_its_end() -> None:
    record = a_record(state=State.DONE, wanted=1, before=0).begun(2, 1.0, "anna")
    record = record.taken(TURN, "restarts etcd main")
    assert record.turn == TURN
    record = record.ended(11.0, TURN.name, "runs revision 2").completed(12.0, "master-b")

    assert record == Rollout(wanted=2, before=1, state=State.DONE)
    assert [(each.at, each.machine, each.text) for each in record.events] == [
        (1.0, "", "revision 2 put in force by anna"),
        (10.0, "master-a", "takes revision 2: restarts etcd main"),
        (11.0, "master-a", "runs revision 2"),
        (12.0, "master-b", "all masters run revision 2"),
    ]


def test_no_second_turn_begins_while_one_is_under_way() -> None:
    with pytest.raises(AssertionError, match="one master at a time"):
        a_record(turn=TURN).taken(replace(TURN, machine="i-2"), "restarts etcd main")


def test_only_the_newest_events_are_kept() -> None:
    record = a_record()
    for number in range(2 * EVENTS):
        record = record.noted(float(number), "master-a", "x")

    assert [each.at for each in record.events] == [float(number) for number in range(EVENTS, 2 * EVENTS)]
