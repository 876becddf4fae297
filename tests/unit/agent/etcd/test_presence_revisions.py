"""What masters learn of each other's revisions over their leases, and how an announcement wakes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from builders.agent import a_machine
from clusters.scenario.edges import FakeClock, HostClock
from protokube.agent.edges import MasterRevision
from protokube.agent.etcd.presence import EVERY, MASTERS, QUICK, ROLLOUT, SOON, TTL, LeasePresence
from protokube.errors import TryLater
from protokube.etcd import KeyValue, NoSpace, Range


@dataclass
class Etcd:
    """Keys and leases that never end."""

    keys: dict[str, KeyValue] = field(default_factory=dict)
    answers: bool = True
    full: bool = False
    puts: int = 0

    def grant(self, _ttl: int) -> int:
        self._reach()
        return 7

    def keep(self, _lease: int) -> bool:
        self._reach()
        return True

    def read(self, prefix: str) -> Sequence[KeyValue]:
        self._reach()
        return [each for key, each in sorted(self.keys.items()) if key.startswith(prefix)]

    def read_at(self, prefix: str) -> Range:
        return Range(cluster_id=1, revision=self.puts + 1, keys=self.read(prefix))

    def put(self, key: str, value: str, lease: int = 0) -> int:
        self._reach()
        if self.full:
            raise NoSpace("database space exceeded")
        self.puts += 1
        self.keys[key] = KeyValue(key=key, value=value, lease=lease, mod_revision=self.puts)
        return self.puts

    def create(self, key: str, value: str, lease: int = 0) -> bool:
        return key not in self.keys and bool(self.put(key, value, lease))

    def _reach(self) -> None:
        if not self.answers:
            raise TryLater("no answer")


class Bench:
    """Masters over one etcd; `woken` counts how often each was woken."""

    def __init__(self) -> None:
        self.etcd, self.clock = Etcd(), FakeClock()
        self.woken: dict[str, int] = {}

    def master(self, name: str, revision: int) -> LeasePresence:
        def wake() -> None:
            self.woken[name] = self.woken.get(name, 0) + 1

        machine = a_machine(name)
        clock = HostClock(self.clock)
        return LeasePresence(cast(Any, self.etcd), machine, clock, wake, lambda: False, revision)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def known(presence: LeasePresence) -> dict[str, int] | None:
    found = presence.revisions()
    return None if found is None else {each.name: each.revision for each in found}


def test_every_master_sees_which_revision_each_of_them_runs(bench: Bench) -> None:
    left, right = bench.master("i-1", 3), bench.master("i-2", 2)
    for _ in range(2):
        left.beat()
        right.beat()

    assert known(left) == known(right) == {"i-1": 3, "i-2": 2}
    assert left.revisions() == (MasterRevision(name="i-1", revision=3), MasterRevision(name="i-2", revision=2))


def test_a_master_sees_its_own_revision_in_its_first_beat(bench: Bench) -> None:
    """Also one that restarted with another revision: its key still has the former one."""
    bench.master("i-1", 2).beat()
    again = bench.master("i-1", 3)
    again.beat()

    assert known(again) == {"i-1": 3}
    assert json.loads(bench.etcd.keys[f"{MASTERS}i-1"].value)["revision"] == 3


def test_another_revision_of_another_master_wakes(bench: Bench) -> None:
    left = bench.master("i-1", 3)
    left.beat()
    bench.master("i-2", 2).beat()
    left.beat()
    before = bench.woken["i-1"]
    left.beat()
    assert bench.woken["i-1"] == before
    bench.master("i-2", 3).beat()
    left.beat()

    assert bench.woken["i-1"] == before + 1


def test_a_list_of_leases_has_the_revision_at_which_it_was_read_and_that_wakes_nobody(bench: Bench) -> None:
    left = bench.master("i-1", 3)
    left.beat()
    left.beat()
    first, woken = left.read_at(), bench.woken["i-1"]
    bench.etcd.put("/elsewhere", "x")
    left.beat()
    second = left.read_at()

    assert first is not None
    assert second is not None
    assert (second.cluster_id, second.revision) == (first.cluster_id, first.revision + 1)
    assert bench.woken["i-1"] == woken


@pytest.mark.parametrize("revision", ["3", None, [], 2.5, {}])
def test_a_master_of_an_earlier_release_runs_none(bench: Bench, revision: object) -> None:
    bench.etcd.put(f"{MASTERS}i-2", json.dumps({"address": "10.0.0.2", "revision": revision}))
    bench.etcd.put(f"{MASTERS}i-3", "no JSON")
    left = bench.master("i-1", 3)
    left.beat()

    assert known(left) == {"i-1": 3, "i-2": 0, "i-3": 0}


def test_before_the_first_answer_and_without_a_fresh_one_nothing_is_known(bench: Bench) -> None:
    left = bench.master("i-1", 3)
    assert (left.revisions(), left.rollout_hint()) == (None, None)
    bench.etcd.put(ROLLOUT, "3 at 100")
    left.beat()
    assert (known(left), left.rollout_hint()) == ({"i-1": 3}, "3 at 100")
    bench.etcd.answers = False
    bench.clock.advance(TTL - 1)
    left.beat()

    assert (left.revisions(), left.rollout_hint()) == (None, None)


def test_without_an_announcement_the_hint_is_empty_and_not_unknown(bench: Bench) -> None:
    left = bench.master("i-1", 3)
    left.beat()

    assert left.rollout_hint() == ""


def test_a_changed_hint_wakes_and_the_same_one_does_not(bench: Bench) -> None:
    left = bench.master("i-1", 3)
    left.beat()
    before = bench.woken["i-1"]
    for hint, wakes in (("4 at 100", 1), ("4 at 100", 0), ("4 at 105", 1), ("5 at 105", 1)):
        bench.etcd.put(ROLLOUT, hint)
        left.beat()
        assert (left.rollout_hint(), bench.woken["i-1"]) == (hint, before + wakes)
        before = bench.woken["i-1"]


def test_the_hint_is_no_master(bench: Bench) -> None:
    bench.etcd.put(ROLLOUT, "4 at 100")
    left = bench.master("i-1", 3)
    left.beat()

    assert set(left.live() or ()) == {"i-1"}


def test_in_a_full_etcd_a_master_knows_its_own_revision_though_it_cannot_tell(bench: Bench) -> None:
    bench.master("i-1", 2).beat()
    bench.etcd.full = True
    again = bench.master("i-1", 3)
    again.beat()

    assert known(again) == {"i-1": 3}
    assert json.loads(bench.etcd.keys[f"{MASTERS}i-1"].value)["revision"] == 2


def test_masters_beat_quickly_until_the_api_server_of_each_is_ready_and_not_for_ever(bench: Bench) -> None:
    ready: set[str] = set()

    def master(name: str) -> LeasePresence:
        return LeasePresence(
            cast(Any, bench.etcd), a_machine(name), HostClock(bench.clock), lambda: None, lambda: name in ready
        )

    one, two = master("i-1"), master("i-2")
    assert [one.work(), two.work()] == [SOON, SOON]
    ready |= {"i-1", "i-2"}
    assert one.work() == SOON, "the other one has not told yet"
    assert [two.work(), one.work()] == [EVERY, EVERY]
    ready.discard("i-2")
    assert [two.work(), one.work()] == [SOON, SOON]
    bench.clock.advance(QUICK)
    assert [two.work(), one.work()] == [EVERY, EVERY], "a broken API server costs no more than others"
    three = master("i-3")
    assert [three.work(), one.work(), two.work()] == [SOON, SOON, SOON], "one that is new is waited for"


def test_masters_without_api_servers_never_beat_quickly(bench: Bench) -> None:
    machine, clock = a_machine("i-1"), HostClock(bench.clock)
    assert LeasePresence(cast(Any, bench.etcd), machine, clock).work() == EVERY
    bench.etcd.answers = False
    assert LeasePresence(cast(Any, bench.etcd), machine, clock).work() == EVERY
