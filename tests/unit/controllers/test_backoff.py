from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from protokube.controllers.backoff import Backoff, ceiling


def test_the_ceiling_doubles_up_to_the_most() -> None:
    assert [ceiling(each) for each in range(1, 6)] == [0.05, 0.1, 0.2, 0.4, 0.8]
    assert ceiling(10**9) == 30


@given(st.lists(st.sampled_from([0.0, 9.9]), max_size=30))
def test_waits_stay_below_the_ceiling_until_something_lasted(lives: list[float]) -> None:
    backoff = Backoff()
    for count, lived in enumerate(lives, start=1):
        assert 0 <= backoff.wait(lived) <= ceiling(count)
    assert backoff.wait(10.0) <= 0.05


def test_waits_of_those_who_fail_together_differ() -> None:
    waits = set()
    for _ in range(20):
        backoff = Backoff()
        backoff.wait()
        waits.add(backoff.wait())
    assert len(waits) > 10
