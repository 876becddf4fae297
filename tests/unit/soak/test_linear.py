"""The checker of histories: believes every real history, and none with something planted in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from soak.chaos.history import Kind, Operation, Result, Value
from soak.chaos.linear import NotLinearizable, Register, TooLarge, pieces, settle
from unit.soak.brute_force import is_linearizable
from unit.soak.histories import Played, arbitrary, played


def passes(history: Sequence[Operation]) -> bool:
    return isinstance(Register().feed(history), Register)


def a_read(seen: Value, invoked: float, returned: float) -> Operation:
    return Operation(client="r", key="r", kind=Kind.READ, invoked=invoked, returned=returned, seen=seen)


def a_write(new: str, invoked: float, returned: float = inf) -> Operation:
    result = Result.UNKNOWN if returned == inf else Result.OK
    return Operation(client="w", key="r", kind=Kind.WRITE, invoked=invoked, returned=returned, new=new, result=result)


def a_swap(expected: Value, new: str, invoked: float, returned: float = inf) -> Operation:
    lost = returned == inf
    return Operation(
        client="s", key="r", kind=Kind.CAS, invoked=invoked, returned=returned, expected=expected, new=new,
        swapped=not lost, result=Result.UNKNOWN if lost else Result.OK,
    )  # fmt: skip


@given(played())
def test_a_history_of_a_real_register_passes(history: Played) -> None:
    assert passes(history.operations)


@examples(300)
@given(arbitrary())
def test_it_agrees_with_trying_every_order(history: list[Operation]) -> None:
    assert passes(history) == is_linearizable(history)


@given(played(most=6))
def test_trying_every_order_also_passes_a_real_register(history: Played) -> None:
    assert is_linearizable(history.operations)


@given(played(lose_replies=False), st.data())
def test_a_stale_read_is_found(history: Played, data: st.DataObject) -> None:
    """Any value that was in the register before an overwriting call returned, read after that."""
    end = max(each.returned for each in history.operations)
    stale = data.draw(st.sampled_from([*history.values, "x"]))
    after = [*history.operations, a_write("x", end + 1, end + 2), a_write("y", end + 3, end + 4)]

    assert passes([*after, a_read("y", end + 5, end + 6)])
    assert not passes([*after, a_read(stale, end + 5, end + 6)])


@given(played(lose_replies=False))
def test_a_lost_write_is_found(history: Played) -> None:
    """A write with a reply, and later reads return an earlier value."""
    end = max(each.returned for each in history.operations)
    write = a_write("lost", end + 1, end + 2)

    assert not passes([*history.operations, write, a_read(history.values[-1], end + 3, end + 4)])
    assert passes([*history.operations, write, a_read("lost", end + 3, end + 4)])


@given(played(lose_replies=False))
def test_a_lost_compare_and_swap_is_found(history: Played) -> None:
    """Two swaps of the same value, both with a reply that they took effect."""
    end = max(each.returned for each in history.operations)
    value = history.values[-1]
    one, other = a_swap(value, "one", end + 1, end + 5), a_swap(value, "other", end + 1, end + 5)

    assert passes([*history.operations, one])
    assert not passes([*history.operations, one, other])


@given(played(lose_replies=False), played(lose_replies=False))
def test_a_history_may_be_checked_in_parts(before: Played, after: Played) -> None:
    end = max(each.returned for each in before.operations)
    start = min(each.invoked for each in after.operations)
    joined = Register().feed(before.operations)
    assert isinstance(joined, Register)
    later = [
        replace(
            each,
            invoked=each.invoked - start + end + 1,
            returned=each.returned - start + end + 1,
            new=f"later {each.new}" if each.new else None,
            expected=f"later {each.expected}" if each.expected else None,
            seen=f"later {each.seen}" if each.seen else None,
        )
        for each in after.operations
    ]

    whole = Register().feed([*before.operations, *later])
    parts = joined.feed(later)
    assert isinstance(whole, Register) == isinstance(parts, Register)


class TestCallsWithoutAReply:
    def test_may_take_effect_long_after_they_were_given_up(self) -> None:
        history = [
            a_write("late", 0),
            a_write("x", 1, 2),
            a_read("x", 3, 4),
            a_read("late", 5, 6),
            a_read("late", 7, 8),
        ]

        assert passes(history)

    def test_may_take_effect_after_the_cut_between_two_parts(self) -> None:
        register = Register().feed([a_write("late", 0), a_write("x", 1, 2)])
        assert isinstance(register, Register)

        assert isinstance(register.feed([a_read("x", 3, 4), a_read("late", 5, 6)]), Register)

    def test_take_effect_once(self) -> None:
        history = [a_write("late", 0), a_read("late", 1, 2), a_write("x", 3, 4), a_read("late", 5, 6)]

        assert not passes(history)

    def test_are_not_seen_before_they_were_made(self) -> None:
        assert not passes([a_read("early", 0, 1), a_write("early", 2)])

    def test_a_swap_needs_what_it_compares_with_to_have_been_there(self) -> None:
        assert passes([a_write("x", 0), a_swap("x", "y", 1), a_read("y", 2, 3)])
        assert not passes([a_write("x", 5, 6), a_swap("x", "y", 1), a_read("y", 2, 3)])

    def test_that_nobody_has_seen_are_left_out(self) -> None:
        certain, pending = settle([a_write(f"v{number}", number) for number in range(1000)])

        assert (len(certain), len(pending)) == (0, 1000)


def test_a_value_that_nobody_wrote_is_named() -> None:
    verdict = Register().feed([a_read("from nowhere", 0, 1)])

    assert isinstance(verdict, NotLinearizable)
    assert "a value was read that was never written: from nowhere" in str(verdict)


def test_an_overwritten_value_that_comes_back_in_a_later_part_is_named() -> None:
    register = Register().feed([a_write("old", 0, 1), a_write("new", 2, 3)])
    assert isinstance(register, Register)

    verdict = register.feed([a_read("old", 4, 5)])

    assert isinstance(verdict, NotLinearizable)
    assert "an overwritten value came back: old" in str(verdict)


def test_a_history_is_cut_where_nothing_is_under_way() -> None:
    history = [a_write("a", 0, 2), a_write("b", 1, 3), a_write("c", 4, 5)]

    assert [len(piece) for piece in pieces(history)] == [2, 1]


def test_a_search_that_grows_too_large_is_given_up() -> None:
    history = [a_write(f"v{number}", 0, 100) for number in range(20)]

    with pytest.raises(TooLarge):
        Register().feed(history, most=1000)


def test_a_long_history_of_six_clients_that_hardly_ever_rest_is_decided() -> None:
    history = []
    for number in range(1000):
        at = number * 0.01
        history.append(replace(a_write(f"v{number}", at, at + 0.055), client=f"c{number % 6}"))
        history[-1] = replace(history[-1], returned=at + (0.055 if number % 50 else 0.005))

    assert passes(history)
