"""The generation record as the agent uses it: read at most once a round, changed only over what was read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from builders.agent import a_generation, a_round
from clusters.scenario.edges import FakeClock, HostClock, ShakyStore
from protokube.agent.etcd import generations
from protokube.agent.round import Round
from protokube.errors import Refused, TryLater
from protokube.members.generation import decode, encode
from protokube.store import Changed
from protokube.store.memory import MemoryStore

PATH = "laptop/etcd/main/generation.json"


@pytest.fixture
def store(request: pytest.FixtureRequest) -> ShakyStore:
    store = ShakyStore(MemoryStore(f"generations {request.node.name}"))
    store.create(PATH, encode(a_generation()))
    return store


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def turns(store: ShakyStore, clock: FakeClock) -> Iterator[Round]:
    """One round after the other of one agent."""
    first = a_round(Path("/nowhere"), store=store, clock=HostClock(clock))
    return iter(lambda: Round(edges=first.edges, wanted=first.wanted, report=type(first.report)()), None)


def test_it_is_read_once_in_a_round(turns: Iterator[Round], store: ShakyStore) -> None:
    round_ = next(turns)
    assert generations.read(round_, "main") == a_generation()
    generations.read(round_, "main")
    generations.recent(round_, "main")
    assert store.reads == 1


def test_a_store_that_is_away_is_asked_once_in_a_round_too(turns: Iterator[Round], store: ShakyStore) -> None:
    store.down = True
    round_ = next(turns)
    for _ in range(3):
        with pytest.raises(TryLater, match="cannot reach"):
            generations.read(round_, "main")
        assert generations.recent(round_, "main") is None
    store.down = False
    with pytest.raises(TryLater):
        generations.read(round_, "main")
    assert generations.read(next(turns), "main") == a_generation()


def test_no_record_and_one_that_cannot_be_read_are_none(turns: Iterator[Round], store: ShakyStore) -> None:
    store.put(PATH, b"{")
    assert generations.read(next(turns), "main") is None
    assert generations.read(next(turns), "events") is None


def test_a_closed_record_is_remembered_for_a_minute_and_an_open_one_is_not(
    turns: Iterator[Round], store: ShakyStore, clock: FakeClock
) -> None:
    generations.recent(next(turns), "main")
    generations.recent(next(turns), "main")
    assert store.reads == 2
    generations.change(next(turns), "main", lambda known: known.closed())
    reads = store.reads
    for _ in range(5):
        clock.advance(10)
        assert generations.recent(next(turns), "main") == a_generation(is_open=False)
    assert store.reads == reads
    clock.advance(20)
    generations.recent(next(turns), "main")
    assert store.reads == reads + 1


def test_a_change_is_written_over_what_was_read(turns: Iterator[Round], store: ShakyStore) -> None:
    generations.change(next(turns), "main", lambda known: known.closed())
    generations.change(next(turns), "main", lambda known: known.with_replacement("a", "vol-new"))
    assert decode(store.inner.read(PATH).data) == a_generation(is_open=False, replacements={"a": "vol-new"})


def test_a_change_that_changes_nothing_is_not_written(turns: Iterator[Round], store: ShakyStore) -> None:
    before = store.writes
    generations.change(next(turns), "main", lambda known: known)
    assert store.writes == before


def test_somebody_who_was_faster_is_not_overwritten(turns: Iterator[Round], store: ShakyStore) -> None:
    def slow(known: object) -> object:
        store.put(PATH, encode(a_generation(is_open=False)))
        return replace(a_generation(), replacements={"a": "vol-x"})

    with pytest.raises(Changed):
        generations.change(next(turns), "main", slow)  # type: ignore[arg-type]
    assert decode(store.inner.read(PATH).data) == a_generation(is_open=False)


def test_a_record_that_is_missing_is_not_made_up(turns: Iterator[Round], store: ShakyStore) -> None:
    store.put(PATH, b"nothing")
    with pytest.raises(Refused, match="is missing or cannot be read"):
        generations.change(next(turns), "main", lambda known: known.closed())
