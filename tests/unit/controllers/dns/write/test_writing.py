"""Whether a rejection is about one name or about the whole zone."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.controllers.dns.write.writing import GIVE_UP, Closed, Writing
from protokube.providers.dns import BadRecord, NotAllowed
from protokube.providers.dns.batch import together
from protokube.records import Change, Record
from protokube.records.batches import Unit


def a_unit(number: int) -> Unit:
    record = Record(name=f"w{number:05}.example.com", type="A", values=("10.0.0.1",), ttl=60)
    return Unit(record.name, (Change(before=None, after=record, why="test"),))


class FarSide:
    """Accepts all units but the forbidden ones and the bad ones."""

    def __init__(self, forbidden: Collection[int] = (), bad: Collection[int] = ()) -> None:
        self.forbidden, self.bad = {a_unit(each) for each in forbidden}, {a_unit(each) for each in bad}
        self.calls = 0
        self.taken: list[Unit] = []

    def write(self, units: Sequence[Unit]) -> None:
        self.calls += 1
        if self.forbidden & set(units):
            raise NotAllowed("not allowed")
        if self.bad & set(units):
            raise BadRecord("bad")
        self.taken += units


def units(count: int) -> list[Unit]:
    return [a_unit(number) for number in range(count)]


def carried_out(writing: Writing, far: FarSide, count: int) -> list[Unit]:
    return [unit for unit, _ in writing.carry_out(units(count), together, far.write)]


@given(st.integers(1, 200), st.sets(st.integers(0, 199), max_size=4), st.sets(st.integers(0, 199), max_size=4))
def test_all_is_taken_but_what_is_turned_away(count: int, forbidden: set[int], bad: set[int]) -> None:
    count = max(count, 12)  # so that something is left
    far, writing = FarSide(forbidden, bad), Writing(lambda: 0.0)
    refused = carried_out(writing, far, count)
    outside = {unit for unit in units(count) if unit in far.forbidden | far.bad}
    assert set(refused) == outside
    assert sorted(far.taken, key=lambda unit: unit.name) == [unit for unit in units(count) if unit not in outside]


@pytest.mark.parametrize("count", [1, 10, 5000])
def test_where_all_is_refused_the_zone_is_closed_after_a_few_calls_and_nothing_is_put_aside(count: int) -> None:
    far = FarSide(range(count))
    with pytest.raises(Closed) as caught:
        carried_out(Writing(lambda: 0.0), far, count)
    assert far.calls <= GIVE_UP
    assert caught.value.refused == ()


def test_what_is_only_bad_never_closes_a_zone() -> None:
    far = FarSide(bad=range(100))
    assert len(carried_out(Writing(lambda: 0.0), far, 100)) == 100


def test_a_zone_that_took_something_is_not_closed_by_one_name() -> None:
    far, writing = FarSide([0]), Writing(lambda: 0.0)
    assert carried_out(writing, far, 2) == [a_unit(0)]
    assert carried_out(writing, far, 1) == [a_unit(0)]


def test_of_very_many_that_are_refused_in_a_zone_that_took_something_the_first_are_told_so_that_others_come() -> None:
    far, writing = FarSide(range(5000)), Writing(lambda: 0.0)
    writing.carry_out([a_unit(5000)], together, far.write)
    with pytest.raises(Closed) as caught:
        carried_out(writing, far, 5000)
    assert [unit for unit, _ in caught.value.refused] == units(len(caught.value.refused))
    assert len(caught.value.refused) > GIVE_UP / 4


def test_very_many_that_are_refused_do_not_for_ever_hide_one_that_is_not() -> None:
    far, places = FarSide(range(200)), iter([0.3, 0.6, 0.999])
    writing = Writing(lambda: next(places))
    for _ in range(3):
        with pytest.raises(Closed):
            carried_out(writing, far, 201)
    with pytest.raises(Closed):
        carried_out(writing, far, 201)
    assert far.taken == [a_unit(200)]
