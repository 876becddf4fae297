"""Units packed into batches; one bad unit never blocks the others."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.errors import Refused, TryLater
from protokube.records import Change, Record
from protokube.records.batches import Cost, Unit, batches, bisect, changes_of, units_in


class Picky:
    """Rejects every batch that contains a bad name, as a whole."""

    def __init__(self, *bad: str) -> None:
        self.bad = set(bad)
        self.carried_out: list[Unit] = []
        self.calls = 0

    def __call__(self, units: Sequence[Unit]) -> None:
        self.calls += 1
        if found := sorted({unit.name for unit in units} & self.bad):
            raise Refused(f"{found[0]} is bad")
        self.carried_out.extend(units)


def a_unit(name: str, values: int = 1) -> Unit:
    """A name with so many values, and with a mark."""
    addresses = tuple(f"10.0.0.{number}" for number in range(values))
    records = [
        Record(name=f"_protokube.{name}", type="TXT", values=("mark",), ttl=5),
        Record(name=name, type="A", values=addresses, ttl=5),
    ]
    return Unit(name, tuple(Change(before=None, after=record, why="test") for record in records))


def values_and_calls(change: Change) -> Cost:
    return (len(change.after.values) if change.after else 0), 1


def test_units_are_packed_in_their_order_up_to_the_limit() -> None:
    units = [a_unit(name) for name in "abcde"]

    assert batches(units, values_and_calls, (4, 99)) == [units[:2], units[2:4], units[4:]]


def test_every_limit_counts() -> None:
    units = [a_unit(name, 5) for name in "abc"]

    assert batches(units, values_and_calls, (99, 2)) == [[unit] for unit in units]
    assert batches(units, values_and_calls, (12, 99)) == [units[:2], units[2:]]


def test_a_unit_above_the_limit_is_a_batch_of_its_own_and_not_torn() -> None:
    units = [a_unit("a"), a_unit("b", 50), a_unit("c")]

    assert batches(units, values_and_calls, (10, 10)) == [[unit] for unit in units]


def test_nothing_to_pack_is_no_batch() -> None:
    assert batches([], values_and_calls, (1, 1)) == []


@given(st.lists(st.integers(1, 8), max_size=40), st.integers(1, 20), st.integers(1, 20))
def test_every_unit_is_in_one_batch_and_every_batch_fits_or_is_one_unit(
    sizes: list[int], values: int, calls: int
) -> None:
    units = [a_unit(f"n{number}", size) for number, size in enumerate(sizes)]

    packed = batches(units, values_and_calls, (values, calls))

    assert [unit for batch in packed for unit in batch] == units
    for number, batch in enumerate(packed):
        spent = [sum(each) for each in zip(*map(values_and_calls, changes_of(batch)), strict=True)]
        assert len(batch) == 1 or (spent[0] <= values and spent[1] <= calls)
        for after in packed[number + 1 : number + 2]:
            more = [sum(each) for each in zip(*map(values_and_calls, changes_of([*batch, after[0]])), strict=True)]
            assert more[0] > values or more[1] > calls, "there was room for the next one"


def test_the_units_of_a_batch_of_changes_can_be_told() -> None:
    units = [a_unit(name) for name in "abcd"]

    assert units_in(changes_of([units[2], units[0]]), units) == [units[2], units[0]]


def test_a_good_batch_is_applied_in_one_call() -> None:
    units, zone = [a_unit(f"n{number}") for number in range(10)], Picky()

    done = bisect(units, zone, Refused)

    assert zone.calls == 1
    assert done.applied == tuple(units)
    assert done.quarantined == ()


def test_one_bad_unit_of_five_thousand_is_set_aside_with_its_reason_and_the_others_are_applied() -> None:
    units, zone = [a_unit(f"n{number:04}") for number in range(5000)], Picky("n2500")

    done = bisect(units, zone, Refused)

    assert len(done.applied) == 4999
    assert [(unit.name, why) for unit, why in done.quarantined] == [("n2500", "n2500 is bad")]
    assert zone.carried_out == list(done.applied)
    assert zone.calls <= 2 * ceil(log2(5000)) + 1


def test_nothing_to_apply_makes_no_call() -> None:
    zone = Picky()

    assert bisect([], zone, Refused).applied == ()
    assert zone.calls == 0


def test_a_server_that_does_not_answer_is_not_asked_for_each_half() -> None:
    calls = []

    def silent(units: Sequence[Unit]) -> None:
        calls.append(units)
        raise TryLater("no answer")

    with pytest.raises(TryLater):
        bisect([a_unit("a"), a_unit("b")], silent, Refused)
    assert len(calls) == 1


@given(st.sets(st.integers(0, 40), max_size=30), st.sets(st.integers(0, 40), max_size=30))
def test_exactly_the_bad_ones_are_set_aside(names: set[int], bad: set[int]) -> None:
    zone = Picky(*(f"n{number}" for number in bad))

    done = bisect([a_unit(f"n{number}") for number in names], zone, Refused)

    assert {unit.name for unit in done.applied} == {f"n{number}" for number in names - bad}
    assert {unit.name for unit, _ in done.quarantined} == {f"n{number}" for number in names & bad}
    assert zone.carried_out == list(done.applied)
