"""One bad record never blocks the others."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.errors import Refused, TryLater
from protokube.records import Change
from protokube.records.names import make_record
from protokube.records.plan import bisect


class Picky:
    """Turns away every batch that holds a bad name, as a whole."""

    def __init__(self, *bad: str) -> None:
        self.bad = set(bad)
        self.carried_out: list[Change] = []
        self.calls = 0

    def __call__(self, batch: Sequence[Change]) -> None:
        self.calls += 1
        if found := sorted({change.key[0] for change in batch} & self.bad):
            raise Refused(f"{found[0]} is bad")
        self.carried_out.extend(batch)


def a_change(name: str, kind: str = "A") -> Change:
    value = "10.0.0.1" if kind == "A" else "text"
    return Change(before=None, after=make_record(name, kind, [value], 5), why="test")


def test_a_good_batch_is_applied_in_one_call() -> None:
    batch, zone = [a_change(f"n{number}.dev") for number in range(10)], Picky()

    done = bisect(batch, zone, Refused)

    assert zone.calls == 1
    assert done.applied == tuple(batch)
    assert done.quarantined == ()


def test_one_bad_record_of_a_thousand_is_set_aside_with_its_reason_and_the_others_are_applied() -> None:
    batch, zone = [a_change(f"n{number:04}.dev") for number in range(1000)], Picky("n0500.dev")

    done = bisect(batch, zone, Refused)

    assert len(done.applied) == 999
    assert [(change.key[0], why) for change, why in done.quarantined] == [("n0500.dev", "n0500.dev is bad")]
    assert zone.carried_out == list(done.applied)
    assert zone.calls <= 2 * ceil(log2(1000)) + 1


def test_changes_at_one_name_stay_together() -> None:
    batch = [a_change("a.dev"), a_change("b.dev", "TXT"), a_change("a.dev", "TXT"), a_change("b.dev")]
    zone = Picky("a.dev")

    done = bisect(batch, zone, Refused)

    assert [change.key for change in done.applied] == [("b.dev", "A"), ("b.dev", "TXT")]
    assert [change.key for change, _ in done.quarantined] == [("a.dev", "A"), ("a.dev", "TXT")]


def test_nothing_to_apply_makes_no_call() -> None:
    zone = Picky()

    assert bisect([], zone, Refused).applied == ()
    assert zone.calls == 0


def test_a_server_that_does_not_answer_is_not_asked_for_each_half() -> None:
    calls = []

    def silent(batch: Sequence[Change]) -> None:
        calls.append(batch)
        raise TryLater("no answer")

    with pytest.raises(TryLater):
        bisect([a_change("a.dev"), a_change("b.dev")], silent, Refused)
    assert len(calls) == 1


@given(
    st.sets(st.integers(0, 40), max_size=30),
    st.sets(st.integers(0, 40), max_size=30),
)
def test_exactly_the_bad_ones_are_set_aside(names: set[int], bad: set[int]) -> None:
    zone = Picky(*(f"n{number}.dev" for number in bad))

    done = bisect([a_change(f"n{number}.dev") for number in names], zone, Refused)

    assert {change.key[0] for change in done.applied} == {f"n{number}.dev" for number in names - bad}
    assert {change.key[0] for change, _ in done.quarantined} == {f"n{number}.dev" for number in names & bad}
