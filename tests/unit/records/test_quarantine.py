"""Rejected units are retried with back-off."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from protokube.records import Change, Record
from protokube.records.batches import Unit
from protokube.records.quarantine import FIRST, LONGEST, Quarantine


def a_unit(name: str = "a.dev", value: str = "10.0.0.1", why: str = "test") -> Unit:
    after = Record(name=name, type="A", values=(value,), ttl=5)
    return Unit(name, (Change(before=None, after=after, why=why),))


def test_what_was_never_turned_away_is_due() -> None:
    assert Quarantine().due([a_unit()], 0.0) == ([a_unit()], [])
    assert Quarantine().look_again_at is None


def test_what_was_turned_away_waits_with_its_reason_and_is_due_again_after_a_minute() -> None:
    bad, good = a_unit("bad.dev"), a_unit("good.dev")

    quarantine = Quarantine().after([bad, good], [(bad, "too long")], now=1000.0)

    assert quarantine.due([bad, good], 1059.9) == ([good], [(bad, "too long")])
    assert quarantine.due([bad, good], 1060.0) == ([bad, good], [])
    assert quarantine.look_again_at == 1060.0


def test_each_refusal_doubles_the_time_up_to_an_hour() -> None:
    quarantine, now, waits = Quarantine(), 0.0, []
    for _ in range(30):
        quarantine = quarantine.after([a_unit()], [(a_unit(), "bad")], now)
        assert quarantine.look_again_at is not None
        waits.append(quarantine.look_again_at - now)
        now = quarantine.look_again_at

    assert waits[:3] == [FIRST, 2 * FIRST, 4 * FIRST]
    assert waits[-1] == max(waits) == LONGEST


def test_a_unit_that_changed_is_tried_at_once_and_begins_anew() -> None:
    quarantine = Quarantine()
    for now in (0.0, 60.0):
        quarantine = quarantine.after([a_unit()], [(a_unit(), "bad")], now)
    changed = a_unit(value="10.0.0.2")

    assert quarantine.due([changed], 61.0) == ([changed], [])
    assert quarantine.after([changed], [(changed, "bad")], 61.0).look_again_at == 61.0 + FIRST


def test_other_words_for_the_same_change_are_no_change() -> None:
    quarantine = Quarantine().after([a_unit()], [(a_unit(), "bad")], 0.0)

    assert quarantine.due([a_unit(why="other words")], 1.0)[0] == []


def test_a_unit_planned_from_another_state_is_another_unit() -> None:
    quarantine = Quarantine().after([a_unit()], [(a_unit(), "bad")], 0.0)
    before = Record(name="a.dev", type="A", values=("10.9.9.9",), ttl=5)
    other = Unit("a.dev", (replace(a_unit().changes[0], before=before),))

    assert quarantine.due([other], 1.0)[0] == [other]


def test_what_is_no_longer_planned_is_forgotten() -> None:
    quarantine = Quarantine().after([a_unit()], [(a_unit(), "bad")], 0.0)

    assert quarantine.after([], [], 1.0) == Quarantine()
    assert quarantine.after([a_unit()], [], 1.0) == quarantine


@given(st.lists(st.tuples(st.sets(st.sampled_from("abc")), st.floats(0, 5000)), max_size=20))
def test_a_bad_unit_is_tried_seldom_and_a_good_one_always(rounds: list[tuple[set[str], float]]) -> None:
    quarantine, now = Quarantine(), 0.0
    tried: dict[str, float] = {}
    for bad, passed in rounds:
        now += passed
        units = [a_unit(name) for name in "abc"]
        ready, waiting = quarantine.due(units, now)
        assert sorted([*ready, *(unit for unit, _ in waiting)], key=lambda unit: unit.name) == units
        for unit, _ in waiting:
            assert now - tried[unit.name] < LONGEST
        refused = [(unit, "bad") for unit in ready if unit.name in bad]
        tried |= {unit.name: now for unit, _ in refused}
        quarantine = quarantine.after(units, refused, now)
        assert quarantine.aside.keys() == {unit.name for unit, _ in [*waiting, *refused]}
