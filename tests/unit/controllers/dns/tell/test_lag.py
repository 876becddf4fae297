"""The lag from a change to its records: which change a round is measured from."""

from __future__ import annotations

from clusters.dns_round import Story
from protokube.controllers.dns.tell.lag import Lag


def test_a_round_is_measured_from_the_first_change_that_it_deals_with() -> None:
    now = 0.0
    lag = Lag(Story(), lambda: now)
    lag.heard()
    now = 1.0
    lag.heard()
    lag.look()
    now = 1.5
    lag.heard()  # too late for this round
    now = 2.0
    first = lag.seconds()
    lag.look()
    now = 3.0
    second = lag.seconds()
    lag.look()

    assert (first, second, lag.seconds()) == (2.0, 1.5, None)


def test_who_looks_sees_what_is_there_and_may_ask_for_a_new_list() -> None:
    story = Story()
    lag = Lag(story)
    lag.relist()

    assert lag.look() == story.look()
