"""What an agent remembers between rounds, and what it forgets."""

from __future__ import annotations

from pathlib import Path

from helpers_agent import a_turn
from helpers_scenarios_edges import FakeClock, HostClock
from protokube.agent.keys import CHECK_EVERY, ensure
from protokube.agent.world import Memory, Turn


def again(turn: Turn) -> Turn:
    """The next round of the same agent."""
    return Turn(world=turn.world, wanted=turn.wanted, report=type(turn.report)())


def test_what_was_confirmed_counts_for_a_while_and_only_for_that_value() -> None:
    memory = Memory()
    memory.confirm("name", ("10.0.0.1", 3), 100.0)
    assert memory.confirmed("name", ("10.0.0.1", 3), 399.0, 300.0)
    assert not memory.confirmed("name", ("10.0.0.1", 3), 400.0, 300.0)
    assert not memory.confirmed("name", ("10.0.0.1", 4), 100.0, 300.0)
    assert not memory.confirmed("other", ("10.0.0.1", 3), 100.0, 300.0)


def test_a_wait_tells_how_long_it_has_lasted() -> None:
    clock = FakeClock()
    turn = a_turn(Path("/nowhere"), clock=HostClock(clock))
    turn.waiting("names", "etcd-a", "no answer")
    turn.forget()
    clock.advance(7)
    turn = again(turn)
    turn.waiting("names", "etcd-a", "no answer")
    assert turn.report.sentence() == "names etcd-a: waits: no answer (for 7 s)"


def test_a_wait_that_ended_begins_anew() -> None:
    clock = FakeClock()
    turn = a_turn(Path("/nowhere"), clock=HostClock(clock))
    turn.waiting("names", "etcd-a", "no answer")
    turn.forget()
    clock.advance(5)
    turn = again(turn)
    turn.forget()
    clock.advance(5)
    turn = again(turn)
    turn.waiting("names", "etcd-a", "no answer")
    assert turn.report.sentence() == "names etcd-a: waits: no answer"


def test_certificates_are_looked_at_every_ten_minutes(tmp_path: Path) -> None:
    clock = FakeClock()
    turn = a_turn(tmp_path, clock=HostClock(clock))
    ensure(turn, ["etcd-a-peer"])
    assert turn.report.sentence() == "keys issued etcd-a-peer: there was none"
    turn.world.keys.issued.clear()  # type: ignore[attr-defined]
    turn = again(turn)
    ensure(turn, ["etcd-a-peer"])
    assert turn.report.sentence() == ""
    clock.advance(CHECK_EVERY)
    ensure(turn, ["etcd-a-peer"])
    assert turn.report.did
