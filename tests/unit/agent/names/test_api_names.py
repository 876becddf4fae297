"""The names of the API: written by the elected master only, and never from what it wrote in an earlier term."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.agent import Alone, a_generation, a_round
from builders.config import completed
from builders.examples import examples
from clusters.scenario.edges import FakeClock, HostClock, ShakyCloud, ShakyDns, ShakyStore
from protokube.agent.names import api_names
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.errors import Refused
from protokube.launch.derive import from_config
from protokube.members.generation import Generation, encode
from protokube.store.memory import MemoryStore

INTERNAL, PUBLIC = "api.internal.laptop", "api.laptop"
NUMBERS = count()


class Stage:
    def __init__(self, name: str, generation: Generation) -> None:
        self.dns, self.clock = ShakyDns("laptop"), FakeClock()
        self.presence = Alone({"i-1": "10.0.0.1", "i-2": "10.0.0.2"}, elected=True)
        self.cloud = ShakyCloud()
        for number in (1, 2, 3):
            self.cloud.add_machine(f"i-{number}", address=f"10.0.0.{number}")
        store = ShakyStore(MemoryStore(f"api {name}"))
        store.create("laptop/etcd/main/generation.json", encode(generation))
        self.round_ = a_round(
            Path("/nowhere"), dns=self.dns, clock=HostClock(self.clock), presence=self.presence, store=store,
            machines=self.cloud.seen_from("i-1"),
        )  # fmt: skip

    def serves_kubernetes(self) -> None:
        wanted = from_config(completed(cloud="local", masters=3, name="laptop"))
        self.round_.wanted = replace(self.round_.wanted, components=wanted.components)

    def round(self) -> str:
        self.round_ = Round(edges=self.round_.edges, wanted=self.round_.wanted, report=Report())
        api_names.sync(self.round_)
        return self.round_.report.sentence()

    def addresses(self) -> tuple[str, ...]:
        assert self.dns.addresses(PUBLIC) == self.dns.addresses(INTERNAL)
        return self.dns.addresses(INTERNAL)


@pytest.fixture
def stage(request: pytest.FixtureRequest) -> Stage:
    return Stage(request.node.name, a_generation(is_open=False))


def test_the_elected_master_writes_who_lives(stage: Stage) -> None:
    assert "api.internal.laptop A: nothing -> 10.0.0.1, 10.0.0.2" in stage.round()
    assert stage.addresses() == ("10.0.0.1", "10.0.0.2")


def test_the_public_name_has_external_addresses_and_the_internal_name_internal_ones(stage: Stage) -> None:
    stage.presence.external = {"i-1": "203.0.113.1"}
    stage.round()
    assert stage.dns.addresses(INTERNAL) == ("10.0.0.1", "10.0.0.2")
    assert stage.dns.addresses(PUBLIC) == ("10.0.0.2", "203.0.113.1")


def test_an_external_address_that_a_master_gets_later_replaces_its_internal_one(stage: Stage) -> None:
    stage.round()
    stage.presence.external = {"i-1": "203.0.113.1", "i-2": "203.0.113.2"}
    written = stage.round()
    assert "10.0.0.1 is only for api.internal.laptop" in written
    assert stage.dns.addresses(INTERNAL) == ("10.0.0.1", "10.0.0.2")
    assert stage.dns.addresses(PUBLIC) == ("203.0.113.1", "203.0.113.2")


@pytest.mark.parametrize("public", [INTERNAL, f"{INTERNAL}.".upper()])
def test_a_name_that_is_internal_and_public_has_internal_addresses(stage: Stage, public: str) -> None:
    stage.presence.external = {"i-1": "203.0.113.1", "i-2": "203.0.113.2"}
    stage.round_.wanted = replace(stage.round_.wanted, api_public_name=public)
    stage.round()
    assert stage.dns.addresses(INTERNAL) == ("10.0.0.1", "10.0.0.2")
    assert stage.round() == ""


def test_the_last_external_address_is_never_removed(stage: Stage) -> None:
    stage.presence.live_masters, stage.presence.external = {"i-1": "10.0.0.1"}, {"i-1": "203.0.113.1"}
    stage.round()
    stage.presence.live_masters = {}
    stage.round()
    assert stage.dns.addresses(INTERNAL) == ("10.0.0.1",)
    assert stage.dns.addresses(PUBLIC) == ("203.0.113.1",)


def test_external_addresses_cost_no_read_in_an_idle_round(stage: Stage) -> None:
    stage.presence.external = {"i-1": "203.0.113.1"}
    stage.round()
    reads = stage.dns.reads
    for _ in range(29):
        stage.clock.advance(10)
        assert stage.round() == ""
    assert (reads, stage.dns.reads) == (1, 1)


MASTERS = st.dictionaries(st.integers(1, 3), st.tuples(st.booleans(), st.booleans()))
"""Number of each live master: whether its API server is ready, whether it has an external address."""


@given(st.lists(MASTERS, min_size=1, max_size=4), st.booleans())
@examples(60)
def test_each_name_has_only_addresses_of_its_kind_whichever_masters_live_and_serve(
    history: list[dict[int, tuple[bool, bool]]], kubernetes: bool
) -> None:
    stage = Stage(f"property {next(NUMBERS)}", a_generation(is_open=False))
    if kubernetes:
        stage.serves_kubernetes()
    published: set[int] = set()
    for masters in history:
        stage.presence.live_masters = {f"i-{n}": f"10.0.0.{n}" for n in masters}
        stage.presence.external = {f"i-{n}": f"203.0.113.{n}" for n, (_, external) in masters.items() if external}
        stage.presence.apis = [f"i-{n}" for n, (serving, _) in masters.items() if serving]
        stage.round()
        chosen = {n: external for n, (serving, external) in masters.items() if serving or not kubernetes}
        published |= chosen.keys()
        if chosen:
            assert set(stage.dns.addresses(INTERNAL)) == {f"10.0.0.{n}" for n in chosen}
            assert set(stage.dns.addresses(PUBLIC)) == {
                f"203.0.113.{n}" if external else f"10.0.0.{n}" for n, external in chosen.items()
            }
        assert bool(stage.dns.addresses(INTERNAL)) == bool(stage.dns.addresses(PUBLIC)) == bool(published)


def test_nobody_else_writes(stage: Stage) -> None:
    stage.presence.is_elected = False
    assert stage.round() == ""
    assert stage.addresses() == ()


def test_without_a_quorum_nobody_writes_and_says_so(stage: Stage) -> None:
    stage.presence.live_masters = None
    assert stage.round() == "api waits: etcd has no quorum, so nobody writes the names of the API"


def test_before_creation_is_closed_there_is_no_api_to_name(request: pytest.FixtureRequest) -> None:
    stage = Stage(request.node.name, a_generation(is_open=True))
    assert stage.round() == "api waits: the creation of the cluster is not closed yet"
    assert stage.addresses() == ()


def test_an_address_that_nobody_can_read_is_left_out(stage: Stage) -> None:
    stage.presence.live_masters = {"i-1": "10.0.0.1", "i-2": ""}
    stage.round()
    assert stage.addresses() == ("10.0.0.1",)


def test_what_was_confirmed_is_not_read_again_for_five_minutes(stage: Stage) -> None:
    stage.round()
    reads = stage.dns.reads
    for _ in range(29):
        stage.clock.advance(10)
        stage.round()
    assert stage.dns.reads == reads
    stage.clock.advance(10)
    stage.round()
    assert stage.dns.reads == reads + 1


def test_a_master_elected_again_does_not_trust_what_it_confirmed_in_its_first_term(stage: Stage) -> None:
    stage.round()
    stage.presence.is_elected = False
    stage.round()
    other = a_round(
        Path("/nowhere"), dns=stage.dns, clock=stage.round_.edges.clock, store=stage.round_.edges.store,
        presence=Alone({"i-2": "10.0.0.2"}, elected=True), machines=stage.cloud.seen_from("i-2"),
    )  # fmt: skip
    api_names.sync(other)
    assert stage.addresses() == ("10.0.0.2",)
    stage.presence.is_elected = True
    stage.round()
    assert stage.addresses() == ("10.0.0.1", "10.0.0.2")


def test_a_machine_that_was_declared_dead_is_not_named_whatever_its_lease_says(stage: Stage) -> None:
    stage.cloud.declare_dead("i-2")
    stage.round()
    assert stage.addresses() == ("10.0.0.1",)


def test_an_elected_master_that_was_declared_dead_itself_writes_nothing_and_retires(stage: Stage) -> None:
    stage.cloud.declare_dead("i-1")
    with pytest.raises(Refused, match="has declared i-1 dead"):
        stage.round()
    assert stage.presence.retired
    assert stage.addresses() == ()


def test_with_kubernetes_only_masters_whose_api_server_is_ready_are_named(stage: Stage) -> None:
    stage.serves_kubernetes()
    stage.presence.apis = ["i-2"]
    stage.round()
    assert stage.addresses() == ("10.0.0.2",)


def test_while_no_api_server_is_ready_the_names_stay(stage: Stage) -> None:
    stage.round()
    stage.serves_kubernetes()
    stage.presence.apis = []
    assert "no API server is ready" in stage.round()
    assert stage.addresses() == ("10.0.0.1", "10.0.0.2")
