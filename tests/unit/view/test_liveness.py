"""Which masters live, from reports of different ages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.published import LIVE as ALL
from builders.published import a_report
from builders.view import NOW
from protokube.view.liveness import (
    CUT_OFF,
    HIDDEN,
    LIVE,
    NO_LEASE,
    NO_QUORUM,
    SILENT,
    UNKNOWN,
    heard_within,
    is_shown,
    judge,
)

HEARD = heard_within(a_report(0))
TWO: dict[str, str] = {machine: ALL[machine] for machine in ("i-1", "i-2")}


def states(*reports: Any) -> list[str]:
    found = judge(reports)
    return [found.state(each) for each in reports]


def without_quorum(number: int, *, age: float, lost_for: float) -> Any:
    return a_report(number, age=age, live=None, withoutQuorumSince=NOW - lost_for)


def test_masters_with_a_live_lease_live_however_old_their_own_report_is() -> None:
    assert states(a_report(0, age=5), a_report(1, age=290), a_report(2, age=4000)) == [LIVE, LIVE, LIVE]


def test_the_newest_report_with_a_quorum_says_who_is_gone() -> None:
    gone, newest, older = a_report(0, age=70), a_report(1, age=5, live=TWO), a_report(2, age=65)

    assert states(gone, newest, older) == [NO_LEASE, LIVE, LIVE]
    assert not judge([gone, newest, older]).is_alive(gone)


def test_a_master_that_is_cut_off_and_not_listed_does_not_speak_for_the_others() -> None:
    alone = without_quorum(0, age=1, lost_for=30)

    assert states(alone, a_report(1, age=20, live=TWO), a_report(2, age=25, live=TWO)) == [CUT_OFF, LIVE, LIVE]
    assert judge([alone, a_report(1, age=20, live=TWO)]).is_alive(alone), "what it waits for is shown"


def test_a_master_that_was_cut_off_and_is_not_heard_any_more_is_gone() -> None:
    alone = without_quorum(0, age=500, lost_for=600)

    assert states(alone, a_report(1, age=20, live=TWO)) == [NO_LEASE, LIVE]


def test_a_list_from_before_the_quorum_was_lost_does_not_count() -> None:
    last = without_quorum(2, age=5, lost_for=20)

    assert states(a_report(0, age=120), a_report(1, age=120), last) == [UNKNOWN, UNKNOWN, NO_QUORUM]


def test_who_has_not_reported_the_lost_quorum_in_time_is_not_there() -> None:
    last = without_quorum(2, age=5, lost_for=HEARD + 1)
    other = without_quorum(1, age=40, lost_for=HEARD + 1)

    assert states(a_report(0, age=200), other, last) == [SILENT, NO_QUORUM, NO_QUORUM]
    assert not judge([a_report(0, age=200), other, last]).is_alive(a_report(0, age=200))


def test_while_nobody_reports_anything_nobody_is_called_dead() -> None:
    reports = [a_report(number, age=900) for number in range(3)]

    assert states(*reports) == [UNKNOWN] * 3
    assert all(judge(reports).is_alive(each) for each in reports)


def test_before_the_first_quorum_each_speaks_for_itself() -> None:
    assert states(*(without_quorum(number, age=3, lost_for=9) for number in range(3))) == [NO_QUORUM] * 3


def test_a_report_of_a_machine_that_is_gone_is_shown_for_an_hour() -> None:
    newest = a_report(1, age=5, live=TWO)
    late, old = a_report(0, age=HIDDEN + 4), a_report(0, age=HIDDEN + 6)

    assert is_shown(late, judge([late, newest]))
    assert not is_shown(old, judge([old, newest]))


def test_a_machine_that_holds_a_volume_is_shown_however_old_its_report_is() -> None:
    old, newest = a_report(0, age=9 * HIDDEN), a_report(1, age=5, live=TWO)

    assert is_shown(old, judge([old, newest]), {"i-0"})
    assert not is_shown(old, judge([old, newest]), {"i-1"})


def test_machines_of_last_week_do_not_come_back_when_the_quorum_is_lost() -> None:
    ghost, gone = a_report(0, age=9 * HIDDEN, live=ALL), a_report(1, age=9 * HIDDEN, live=ALL)
    last = without_quorum(2, age=5, lost_for=20)
    before = a_report(1, age=60, live={"i-1": "", "i-2": ""})

    assert not is_shown(ghost, judge([ghost, before, last]))
    assert is_shown(before, judge([ghost, before, last]))
    assert is_shown(gone, judge([gone, last])), "the last list of leases has it"


def test_a_silent_master_stays_silent_when_its_report_gets_old() -> None:
    last = without_quorum(2, age=5, lost_for=900)
    old = a_report(0, age=905)

    assert old.stale
    assert states(old, last) == [SILENT, NO_QUORUM]
    assert not judge([old, last]).is_alive(old)


def test_one_failed_write_of_a_master_does_not_make_it_silent() -> None:
    late = a_report(0, age=130)

    assert states(late, without_quorum(2, age=5, lost_for=125))[0] == UNKNOWN
    assert heard_within(a_report(0, publishEvery=2.0)) < heard_within(late)


@pytest.mark.parametrize("ahead", [0.0, 60.0, 7200.0])
def test_a_dead_master_whose_clock_is_ahead_is_not_taken_for_the_newest(ahead: float) -> None:
    """Where a store tells no times, all there is are the clocks of the writers, and the revision of etcd."""
    dead = a_report(0, age=70, wrong_by=ahead, live=ALL)
    others = [a_report(number, age=5, live=TWO) for number in (1, 2)]

    assert states(dead, *others) == [NO_LEASE, LIVE, LIVE]


def test_the_leases_of_a_cluster_that_was_made_again_count_anew() -> None:
    old = a_report(0, age=90, live=ALL, leasesRead={"cluster": "c1", "revision": 10**9})
    new = a_report(1, age=5, live=TWO, leasesRead={"cluster": "c2", "revision": 7})

    assert states(old, new) == [NO_LEASE, LIVE]


def test_an_agent_before_its_first_round_does_not_speak_for_the_quorum() -> None:
    boot = a_report(0, age=1, live=None, boot=True)

    assert states(boot, a_report(1, age=20), a_report(2, age=25))[1:] == [LIVE, LIVE]


def test_nothing_is_hidden_while_nobody_knows_who_lives() -> None:
    reports = [a_report(number, age=9 * HIDDEN) for number in range(3)]

    assert all(is_shown(each, judge(reports)) for each in reports)


REPORTS = st.tuples(
    *(
        st.builds(
            lambda age, live, number=number: a_report(
                number, age=age, live=live, withoutQuorumSince=NOW - age if live is None else None
            ),
            st.floats(0, 500),
            st.none() | st.sampled_from([ALL, TWO]),
        )
        for number in range(3)
    )
)


@given(REPORTS)
def test_a_master_is_called_dead_only_by_a_newer_report_or_after_its_time_to_answer(reports: Any) -> None:
    found = judge(reports)
    for each in reports:
        if not found.is_alive(each):
            named = found.leases
            if named is not None:
                assert named.at + 1 >= max(other.at for other in reports if other.live is not None), "whole revisions"
            else:
                assert (found.lost_for or 0) > HEARD


@pytest.mark.parametrize("age", [0, 100, 400])
def test_a_single_master_speaks_for_itself(age: float) -> None:
    alone = a_report(0, age=age, live={"i-0": "10.77.0.11"})

    assert states(alone) == [UNKNOWN if alone.stale else LIVE]
