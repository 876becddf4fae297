"""The call budget: never above its rate, and no call waits longer than needed."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.providers.dns.budget import Budget, TokenBucket

GAPS = st.lists(st.floats(0, 3), min_size=1, max_size=60)


@given(gaps=GAPS, rate=st.floats(0.5, 20), burst=st.integers(1, 10))
def test_in_no_time_more_calls_pass_than_the_burst_and_the_rate_together(
    gaps: list[float], rate: float, burst: int
) -> None:
    bucket, now, passed = TokenBucket(rate, burst), 0.0, list[float]()
    for gap in gaps:
        now += gap
        passed.append(now + bucket.take(now))

    assert passed == sorted(passed)
    for first, start in enumerate(passed):
        for last in range(first, len(passed)):
            assert last - first + 1 <= burst + rate * (passed[last] - start) + 1e-6


@given(gaps=GAPS, rate=st.floats(0.5, 20), burst=st.integers(1, 10))
def test_nobody_waits_while_less_was_asked_for(gaps: list[float], rate: float, burst: int) -> None:
    bucket, now = TokenBucket(rate, burst), 100.0
    for gap in gaps:
        now += gap + 1 / rate
        assert bucket.take(now) == pytest.approx(0, abs=1e-6)


def test_a_burst_passes_at_once_and_the_next_ones_in_turn() -> None:
    bucket = TokenBucket(4, 3)

    assert [bucket.take(50.0) for _ in range(6)] == pytest.approx([0, 0, 0, 0.25, 0.5, 0.75])
    assert bucket.take(60.0) == 0


def test_calls_wait_for_their_turn_and_are_counted_by_kind() -> None:
    slept: list[float] = []
    budget = Budget(TokenBucket(2, 1), clock=lambda: 7.0, sleep=slept.append)

    for kind in ("list", "apply", "apply", "zones"):
        budget.spend(kind)

    assert slept == [0.5, 1.0, 1.5]
    assert budget.calls == {"list": 1, "apply": 2, "zones": 1}


def test_without_a_bucket_nobody_waits() -> None:
    budget = Budget(sleep=lambda _: pytest.fail("it slept"))

    for _ in range(100):
        budget.spend("read")

    assert budget.calls == {"read": 100}


def test_threads_share_one_budget() -> None:
    slept: list[float] = []
    budget = Budget(TokenBucket(10, 1), clock=lambda: 0.0, sleep=slept.append)

    def spend() -> None:
        for _ in range(25):
            budget.spend("read")

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(slept) == pytest.approx([number / 10 for number in range(1, 100)])
