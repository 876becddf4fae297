"""The turn of a machine that does not exist any more is ended by the elected master."""

from __future__ import annotations

from typing import Any

import pytest

from builders.agent import Machines
from clusters.delivery import LIVE, ME, OTHER, THIRD, Bench, turn_of
from protokube.agent.delivery.revision import GONE, LISTS, SOON
from protokube.errors import TryLater


@pytest.fixture
def waiting(bench: Bench) -> Bench:
    """The same, and it is the turn of i-2, whose lease has ended; this master is elected."""
    bench.change(turn=turn_of("i-2"))
    bench.presence.is_elected = True
    bench.presence.live_masters = {ME.id: LIVE[ME.id]}
    return bench


def freed(bench: Bench, rounds: int, seconds: float) -> bool:
    """Whether the turn of the machine was ended within so many rounds."""
    turn = bench.record.turn
    for _ in range(rounds):
        bench.sync(seconds)
        if bench.record.turn != turn:
            return True
    return False


def test_a_turn_lasts_as_long_as_its_machine_is_listed(waiting: Bench) -> None:
    assert not freed(waiting, 50, 600.0)


def test_the_provider_is_not_asked_for_a_machine_whose_lease_lives(waiting: Bench) -> None:
    waiting.presence.live_masters = dict(LIVE)
    waiting.machines.listed = (ME, THIRD)

    assert not freed(waiting, 20, GONE)


def test_a_turn_ends_with_its_machine_where_lists_are_consistent(waiting: Bench) -> None:
    waiting.machines.listed = (ME, THIRD)

    assert freed(waiting, 1, SOON)
    assert waiting.record.events[-1].text == "i-2 does not exist any more; its turn is over"


def test_where_lists_lag_several_must_lack_it_for_a_while(waiting: Bench) -> None:
    waiting.volumes.consistent = False
    waiting.machines.listed = (ME, THIRD)

    assert not freed(waiting, 20, GONE / 21), "often, but not for long enough"
    waiting.machines.listed = (ME, OTHER, THIRD)
    waiting.sync(SOON)
    waiting.machines.listed = (ME, THIRD)
    assert not freed(waiting, LISTS - 1, GONE), "for long, but not often enough"
    assert freed(waiting, 1, SOON)


def test_a_list_without_ourselves_proves_nothing(waiting: Bench) -> None:
    waiting.machines.listed = (THIRD,)

    assert not freed(waiting, 20, GONE)


def test_only_the_elected_master_ends_the_turn_of_another(waiting: Bench) -> None:
    waiting.presence.is_elected = False
    waiting.machines.listed = (ME, THIRD)

    assert not freed(waiting, 20, GONE)


def test_what_was_counted_for_one_machine_does_not_end_the_turn_of_the_next(waiting: Bench) -> None:
    """A lagging list lacks a machine that has just taken its turn."""
    waiting.volumes.consistent = False
    waiting.machines.listed = (ME,)
    assert freed(waiting, 2 * LISTS, GONE)
    waiting.change(turn=turn_of("i-3"))

    assert not freed(waiting, 1, SOON)


def test_a_list_that_fails_is_counted_anew(waiting: Bench) -> None:
    class Failing(Machines):
        def list_machines(self) -> Any:
            raise TryLater("the provider does not answer")

    waiting.volumes.consistent = False
    waiting.machines.listed = (ME, THIRD)
    assert not freed(waiting, LISTS - 1, GONE)
    waiting.edges.machines = Failing(ME)
    with pytest.raises(TryLater):
        waiting.sync(SOON)
    waiting.edges.machines = waiting.machines

    assert not freed(waiting, LISTS - 1, GONE)
