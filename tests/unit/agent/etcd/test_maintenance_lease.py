"""One API server at a time is away on purpose, and nobody who dies or forgets keeps the others waiting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.scenario.edges import FakeClock, HostClock
from protokube.agent.etcd.maintenance_lease import LONGEST, SURELY_BACK, TTL, MaintenanceLease
from protokube.agent.etcd.presence import EVERY
from protokube.errors import TryLater

KEY, STEP = "/protokube/leave", 0.25


@dataclass
class Leases:
    """As much of etcd as a leave needs: keys that go with their leases."""

    clock: FakeClock
    ends: dict[int, float] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    answers: bool = True

    def grant(self, ttl: int) -> int:
        self._expire()
        lease = len(self.ends) + 1
        self.ends[lease] = self.clock.seconds + ttl
        return lease

    def keep(self, lease: int) -> bool:
        self._expire()
        if self.ends[lease] <= self.clock.seconds:
            return False
        self.ends[lease] = self.clock.seconds + TTL
        return True

    def revoke(self, lease: int) -> None:
        self._expire()
        self.ends[lease] = 0.0

    def create(self, key: str, value: str, lease: int) -> bool:
        self._expire()
        return self.keys.setdefault(key, lease) == lease

    def _expire(self) -> None:
        if not self.answers:
            raise TryLater("nobody answers")
        self.keys = {key: lease for key, lease in self.keys.items() if self.ends[lease] > self.clock.seconds}

    def taken(self) -> bool:
        self._expire()
        return KEY in self.keys


class Master:
    """One that asks for leave until it gets it, and whose API server is then away for so many seconds."""

    def __init__(self, name: str, etcd: Leases, away: float = 5.0) -> None:
        self.lease = MaintenanceLease(cast(Any, etcd), KEY, name, HostClock(etcd.clock))
        self.etcd, self.takes = etcd, away
        self.wants, self.went = True, -1e9
        self.goes = 0

    @property
    def is_away(self) -> bool:
        return self.etcd.clock.seconds - self.went < self.takes

    def ask(self) -> bool:
        if self.wants and self.lease.may_restart():
            self.wants, self.went, self.goes = False, self.etcd.clock.seconds, self.goes + 1
            return True
        return False

    def beat(self) -> bool:
        return self.lease.beat(self.etcd.taken(), not self.is_away)

    def live(self, seconds: float, also: Callable[[], object] = lambda: None) -> None:
        for _ in range(int(seconds / EVERY)):
            self.etcd.clock.advance(EVERY)
            self.beat()
            also()


@pytest.fixture
def etcd() -> Leases:
    return Leases(FakeClock())


def restarting(etcd: Leases, away: float = 5.0) -> Master:
    master = Master("i-1", etcd, away)
    assert not master.ask()
    assert master.beat()
    assert master.ask()
    return master


@given(
    st.lists(st.tuples(st.floats(EVERY, SURELY_BACK), st.floats(0, 20), st.floats(0, EVERY)), min_size=2, max_size=9)
)
def test_never_two_are_away_and_everybody_goes(times: list[tuple[float, float, float]]) -> None:
    etcd = Leases(FakeClock())
    masters = [Master(f"i-{number}", etcd, away) for number, (away, _, _) in enumerate(times)]
    begin = {master: after for master, (_, after, _) in zip(masters, times, strict=True)}
    next_beat = {master: phase for master, (_, _, phase) in zip(masters, times, strict=True)}
    start = etcd.clock.seconds
    for _ in range(int((20 + len(times) * (SURELY_BACK + 5)) / STEP)):
        etcd.clock.advance(STEP)
        for master in masters:
            if etcd.clock.seconds - start >= begin[master]:
                master.ask()
            if etcd.clock.seconds - start >= next_beat[master]:
                next_beat[master] += EVERY
                master.beat()
        assert sum(master.is_away for master in masters) <= 1
    assert [master.goes for master in masters] == [1] * len(masters)
    assert not etcd.taken()


def test_a_leave_is_for_one_absence(etcd: Leases) -> None:
    master = restarting(etcd)
    assert not master.lease.may_restart()
    master.live(2)
    assert not master.lease.may_restart(), "the first one is not over"


@pytest.mark.parametrize(
    ("away", "still", "later"),
    [
        pytest.param(3.0, 3.0, 2 * EVERY, id="as soon as the API server is back"),
        pytest.param(0.0, SURELY_BACK - 2 * EVERY, 4 * EVERY, id="after a while only, if nobody saw it away"),
        pytest.param(1e9, LONGEST - 2 * EVERY, 4 * EVERY, id="not never, though it does not come back"),
    ],
)
def test_it_is_over(etcd: Leases, away: float, still: float, later: float) -> None:
    master = restarting(etcd, away)
    master.live(still)
    assert etcd.taken()
    master.live(later)
    assert not etcd.taken()


def test_a_leave_that_is_not_used_is_given_back(etcd: Leases) -> None:
    master = Master("i-1", etcd)
    master.ask()
    assert master.beat()
    master.live(TTL + 2 * EVERY)
    assert not etcd.taken()
    assert not master.lease.may_restart(), "it has to be got anew"


def test_a_master_that_dies_on_leave_is_waited_for_no_longer_than_its_lease(etcd: Leases) -> None:
    restarting(etcd)
    other = Master("i-2", etcd)
    other.live(TTL - EVERY, other.ask)
    assert other.wants
    other.live(3 * EVERY, other.ask)
    assert other.goes == 1


def test_a_leave_that_was_lost_while_nobody_answered_is_not_used(etcd: Leases) -> None:
    master = Master("i-1", etcd)
    master.ask()
    assert master.beat()
    etcd.answers = False
    etcd.clock.advance(TTL)
    with pytest.raises(TryLater):
        master.beat()
    assert not master.ask(), "another one may have it by now"
    etcd.answers = True
    assert not master.beat()
    assert master.beat(), "and it is asked for anew"


def test_only_one_of_two_that_see_it_free_at_one_moment_gets_it_and_the_other_leaves_nothing(etcd: Leases) -> None:
    first, second = Master("i-1", etcd), Master("i-2", etcd)
    assert not first.ask()
    assert not second.ask()
    assert first.lease.beat(False, True)
    assert not second.lease.beat(False, True)
    assert not second.ask()
    assert sum(release > etcd.clock.seconds for release in etcd.ends.values()) == 1


@pytest.mark.parametrize("answers", [True, False])
def test_who_retires_gives_it_back_or_lets_it_end(etcd: Leases, answers: bool) -> None:
    master = restarting(etcd)
    etcd.answers = answers
    master.lease.release()
    etcd.answers = True
    assert etcd.taken() is not answers
    etcd.clock.advance(TTL)
    assert not etcd.taken()
    master.lease.release()
