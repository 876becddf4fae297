"""The state that follows from results of probes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protokube.local.pods.probestate import Probe, TcpSocket, Verdict, is_ready, judge, why_restart

steady = settings(derandomize=True, deadline=None)

CHECK = TcpSocket(host="", port=1)
ANSWERS = st.lists(st.sampled_from([None, "refused", "too late"]), max_size=30)
PROBES = st.builds(Probe, check=st.just(CHECK), successes=st.integers(1, 4), failures=st.integers(1, 4))


def after(probe: Probe, answers: list[str | None]) -> Verdict:
    verdict = Verdict()
    for answer in answers:
        verdict = judge(verdict, probe, answer)
    return verdict


@pytest.mark.parametrize(
    ("answers", "good"),
    [
        ([], None),
        (["no"], None),
        (["no", "no"], None),
        (["no", "no", "no"], False),
        (["no", "no", None], True),
        ([None, "no", "no"], True),
        ([None, "no", "no", "no"], False),
        (["no", "no", "no", None], True),
    ],
)
def test_it_takes_three_failures_in_a_row_and_one_success(answers: list[str | None], good: bool | None) -> None:
    assert after(Probe(check=CHECK), answers).good is good


@steady
@given(PROBES, ANSWERS)
def test_the_verdict_is_that_of_the_last_run_that_was_long_enough(probe: Probe, answers: list[str | None]) -> None:
    expected: bool | None = None
    run = 0
    last: bool | None = None
    for answer in answers:
        good = answer is None
        run = run + 1 if good is last else 1
        last = good
        if run >= (probe.successes if good else probe.failures):
            expected = good
    assert after(probe, answers).good is expected


@steady
@given(PROBES, ANSWERS)
def test_counts_are_of_the_run_that_goes_on_and_the_reason_is_the_last_one(
    probe: Probe, answers: list[str | None]
) -> None:
    verdict = after(probe, answers)
    assert not (verdict.passed and verdict.failed)
    assert verdict.passed + verdict.failed <= len(answers)
    failures = [answer for answer in answers if answer]
    assert verdict.why == (failures[-1] if failures else "")


GOOD, BAD, UNKNOWN = Verdict(good=True), Verdict(good=False, why="refused"), Verdict()


@pytest.mark.parametrize(
    ("readiness", "startup", "ready"),
    [
        (None, None, True),
        (GOOD, None, True),
        (UNKNOWN, None, False),
        (BAD, None, False),
        (None, GOOD, True),
        (None, UNKNOWN, False),
        (GOOD, UNKNOWN, False),
        (GOOD, GOOD, True),
        (BAD, GOOD, False),
    ],
)
def test_ready_is_who_proved_it(readiness: Verdict | None, startup: Verdict | None, ready: bool) -> None:
    assert is_ready(readiness, startup) is ready


@pytest.mark.parametrize(
    ("liveness", "startup", "why"),
    [
        (None, None, None),
        (GOOD, None, None),
        (UNKNOWN, None, None),
        (BAD, None, "liveness probe failed: refused"),
        (BAD, UNKNOWN, None),
        (BAD, GOOD, "liveness probe failed: refused"),
        (None, BAD, "startup probe failed: refused"),
        (GOOD, BAD, "startup probe failed: refused"),
        (None, GOOD, None),
    ],
)
def test_alive_is_who_was_not_proven_dead(liveness: Verdict | None, startup: Verdict | None, why: str | None) -> None:
    assert why_restart(liveness, startup) == why
