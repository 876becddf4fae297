"""What an agent remembers between rounds, and what it forgets."""

from __future__ import annotations

from pathlib import Path

from builders.agent import a_round
from clusters.scenario.edges import FakeClock, HostClock
from protokube.agent.cache import Cache, Confirmed, is_fresh, is_recent, seconds_left
from protokube.agent.controlplane.etcd_member import EtcdCache
from protokube.agent.controlplane.keys import CHECK_EVERY, ensure
from protokube.agent.round import Round
from protokube.agent.volume.phases import VolumesCache


def again(round_: Round) -> Round:
    """The next round of the same agent."""
    return Round(edges=round_.edges, wanted=round_.wanted, report=type(round_.report)())


def test_what_was_confirmed_counts_for_a_while_and_only_for_that_value() -> None:
    known = Confirmed(("10.0.0.1", 3), 100.0)
    assert is_fresh(known, ("10.0.0.1", 3), 399.0, 300.0)
    assert not is_fresh(known, ("10.0.0.1", 3), 400.0, 300.0)
    assert not is_fresh(known, ("10.0.0.1", 4), 100.0, 300.0)
    assert not is_fresh(None, ("10.0.0.1", 3), 100.0, 300.0)


def test_what_was_done_is_recent_for_a_while() -> None:
    assert is_recent(100.0, 399.0, 300.0)
    assert not is_recent(100.0, 400.0, 300.0)
    assert not is_recent(None, 0.0, 300.0)
    assert seconds_left(100.0, 399.0, 300.0) == 1.0
    assert seconds_left(100.0, 500.0, 300.0) == seconds_left(None, 0.0, 300.0) == 0.0


def test_each_step_has_one_cache_of_its_own_and_it_begins_empty() -> None:
    memory = Cache()
    memory.of(EtcdCache).voters["main/a"] = "vol-1"
    assert memory.of(EtcdCache).voters == {"main/a": "vol-1"}
    assert memory.of(VolumesCache) == VolumesCache()
    assert Cache().of(EtcdCache) == EtcdCache()


def test_a_wait_tells_how_long_it_has_lasted() -> None:
    clock = FakeClock()
    round_ = a_round(Path("/nowhere"), clock=HostClock(clock))
    round_.waiting("names", "etcd-a", "no answer")
    round_.forget()
    clock.advance(7)
    round_ = again(round_)
    round_.waiting("names", "etcd-a", "no answer")
    assert round_.report.sentence(clock.wall) == "names etcd-a: waits: no answer (for 7 s)"


def test_a_wait_that_ended_begins_anew() -> None:
    clock = FakeClock()
    round_ = a_round(Path("/nowhere"), clock=HostClock(clock))
    round_.waiting("names", "etcd-a", "no answer")
    round_.forget()
    clock.advance(5)
    round_ = again(round_)
    round_.forget()
    clock.advance(5)
    round_ = again(round_)
    round_.waiting("names", "etcd-a", "no answer")
    assert round_.report.sentence() == "names etcd-a: waits: no answer"


def test_certificates_are_looked_at_every_ten_minutes(tmp_path: Path) -> None:
    clock = FakeClock()
    round_ = a_round(tmp_path, clock=HostClock(clock))
    ensure(round_, ["etcd-a-peer"])
    assert round_.report.sentence() == "keys issued etcd-a-peer: there was none"
    round_.edges.keys.issued.clear()  # type: ignore[attr-defined]
    round_ = again(round_)
    ensure(round_, ["etcd-a-peer"])
    assert round_.report.sentence() == ""
    clock.advance(CHECK_EVERY)
    ensure(round_, ["etcd-a-peer"])
    assert round_.report.did
