"""What an agent publishes that has had no round yet."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from clusters.scenario.edges import FakeClock, HostClock, ShakyStore
from protokube.agent.firstboot import FirstBoot
from protokube.agent.publish import LEAST, MOST
from protokube.cli.agent import retry_until_answered
from protokube.errors import Refused, TryLater
from protokube.store import layout
from protokube.store.memory import MemoryStore
from protokube.view.published import is_followed, read_published
from protokube.view.stored import StoredSource

STORES = count(1)
HOST = "ip-10-0-0-1"


class Bench:
    def __init__(self) -> None:
        self.common = FakeClock()
        self.clock = HostClock(self.common)
        self.store = ShakyStore(MemoryStore(f"firstboot-{next(STORES)}", clock=self.clock.now))
        self.store.inner.put(layout.config("dev"), b"kind: Cluster")
        self.first = FirstBoot(self.store, "dev", HOST, self.clock)

    @property
    def data(self) -> bytes:
        return self.store.inner.read(layout.agent("dev", HOST)).data


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_what_an_agent_waits_for_before_its_first_round_is_seen_in_the_store(bench: Bench) -> None:
    bench.first.waiting(TryLater("the metadata service does not answer", hint="look at its routes; password=x"))
    bench.common.advance(5)
    view = StoredSource(bench.store, "dev", bench.clock.now).look()

    (wait,) = view.waits
    assert (wait.host, wait.note.text, wait.seconds) == (HOST, "the metadata service does not answer", 5.0)
    assert "password=x" not in wait.note.hint
    assert not view.ready


def test_the_reason_why_an_agent_ends_needs_a_person_who_reads_the_store(bench: Bench) -> None:
    def turned_away() -> Any:
        raise Refused("this machine has no role", hint="give it one")

    bench.first.waiting(TryLater("not yet"))
    with pytest.raises(Refused, match="has no role"):
        retry_until_answered(turned_away, bench.first)

    view = StoredSource(bench.store, "dev", bench.clock.now).look()
    assert [each.note.text for each in view.person] == ["this machine has no role"]


def test_it_is_written_once_a_minute_at_most_and_every_five_minutes_at_least(bench: Bench) -> None:
    for number in range(int(MOST + LEAST)):
        bench.first.waiting(TryLater(f"no answer after {number // 10}"))
        bench.common.advance(1)
    assert bench.store.writes == (MOST + LEAST) // LEAST

    bench.store.down = True
    bench.first.refused(Refused("never raises"))


def test_once_the_agent_knows_its_machine_the_record_is_no_machine_of_its_own(bench: Bench) -> None:
    bench.first.waiting(TryLater("not yet"))
    assert not is_followed(bench.data)

    bench.first.over("i-1")
    assert is_followed(bench.data)
    writes = bench.store.writes
    bench.first.over("i-1")
    assert bench.store.writes == writes


def test_the_record_of_a_machine_that_is_called_like_its_host_is_left_to_its_agent(bench: Bench) -> None:
    path = layout.agent("dev", HOST)
    bench.store.inner.put(path, json.dumps({"at": bench.clock.now() - 50, "volumes": [], "volumesAge": 10.0}).encode())
    bench.first.waiting(TryLater("not yet"))
    bench.first.over(HOST)

    found = read_published(bench.data, bench.clock.now())
    assert found is not None
    assert (found.boot, found.volumes) == (True, ())
    assert found.at - found.listed_at == 60.0, "the only list there is must not go"


def test_nothing_is_written_into_a_store_that_holds_nothing_of_the_cluster(bench: Bench) -> None:
    FirstBoot(bench.store, "other", HOST, bench.clock).waiting(TryLater("not yet"))

    assert bench.store.writes == 0
