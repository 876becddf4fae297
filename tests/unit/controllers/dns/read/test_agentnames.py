"""The agents' names: a change of the Lease is a renewal, its timestamps are never compared."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.controllers.dns.read.agentnames import AgentLease, AgentNames, Lease, Names, agent_lease
from protokube.records.api import LEASE_EXTERNAL, LEASE_MEMBERS, LEASE_NAMES, LEASE_SECONDS

API = frozenset({"api.example.com"})


def a_lease(renewed: str = "2026-01-01T00:00:00Z", seconds: float = 40.0) -> AgentLease:
    return AgentLease(API, renewed, seconds)


def test_a_lease_reserves_its_names_until_it_ends() -> None:
    agents = AgentNames()
    assert agents.look(a_lease(), in_touch=True, now=100) == Names(reserved=API, ends_at=140)
    assert agents.look(a_lease(), in_touch=True, now=139) == Names(reserved=API, ends_at=140)
    assert agents.look(a_lease(), in_touch=True, now=140) == Names(left=API)


@pytest.mark.parametrize("renewed", ["1999-01-01T00:00:00Z", "2099-01-01T00:00:00Z", "no time at all", ""])
def test_a_lease_that_changes_is_renewed_whatever_time_it_names(renewed: str) -> None:
    agents = AgentNames()
    agents.look(a_lease(), in_touch=True, now=0)
    assert agents.look(a_lease(renewed), in_touch=True, now=1000).reserved == API


def test_a_lease_that_is_not_heard_of_counts_as_renewed_and_for_its_whole_time_afterwards() -> None:
    agents = AgentNames()
    agents.look(a_lease(), in_touch=True, now=0)
    for now in (100, 1000, 10000):
        assert agents.look(a_lease(), in_touch=False, now=now).reserved == API
    assert agents.look(a_lease(), in_touch=True, now=10039).reserved == API
    assert agents.look(a_lease(), in_touch=True, now=10040).left == API


def test_a_lease_that_is_deleted_reserves_nothing_and_leaves_nothing() -> None:
    agents = AgentNames()
    agents.look(a_lease(), in_touch=True, now=0)
    assert agents.look(None, in_touch=True, now=1) == Names()


def test_a_lease_that_cannot_be_seen_at_all_reserves_what_it_reserved() -> None:
    agents = AgentNames()
    assert agents.look(None, in_touch=False, now=0) == Names()
    agents.look(a_lease(), in_touch=True, now=1)
    assert agents.look(None, in_touch=False, now=1000) == Names(reserved=API)


@pytest.mark.parametrize("later", [None, AgentLease(API, "", 40.0)], ids=["deleted", "written by somebody else"])
def test_the_names_of_etcd_members_are_kept_whatever_becomes_of_the_lease(later: AgentLease | None) -> None:
    agents, members = AgentNames(), frozenset({"etcd-a.internal.example.com"})
    external = {"203.0.113.1": "10.0.0.1"}
    first = AgentLease(API, "then", 40.0, members=members, external=external)
    assert agents.look(first, in_touch=True, now=0).members == members
    assert agents.look(first, in_touch=True, now=1000).members == members
    after = agents.look(later, in_touch=True, now=1001)
    assert (after.members, after.external) == (members, external)


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 39), st.booleans()), max_size=20))
def test_names_are_never_left_while_the_lease_changes_in_time(steps: list[tuple[int, float, bool]]) -> None:
    agents, now = AgentNames(), 0.0
    agents.look(a_lease("first"), in_touch=True, now=now)
    for number, (_, passed, in_touch) in enumerate(steps):
        now += passed
        assert agents.look(a_lease(str(number)), in_touch=in_touch, now=now).left == frozenset()


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({"metadata": {}}, AgentLease(frozenset(), "", LEASE_SECONDS)),
        (
            {
                "metadata": {
                    "annotations": {
                        LEASE_NAMES: " API.example.com. ,,not a name, b.example.com",
                        LEASE_MEMBERS: "ETCD-a.x",
                        LEASE_EXTERNAL: " 203.0.113.1=10.0.0.1,,x=10.0.0.2,203.0.113.3, 2001:DB8::1=10.0.0.4",
                    }
                },
                "spec": {"renewTime": "then", "leaseDurationSeconds": 7},
            },
            AgentLease(
                frozenset({"api.example.com", "b.example.com"}),
                "then",
                7,
                members=frozenset({"etcd-a.x"}),
                external={"203.0.113.1": "10.0.0.1", "2001:db8::1": "10.0.0.4"},
            ),
        ),
        ({"metadata": {"annotations": None}, "spec": None}, AgentLease(frozenset(), "", LEASE_SECONDS)),
    ],
    ids=["an empty one", "names in every form", "one with nothing said"],
)
def test_a_lease_is_read(tree: dict[str, object], expected: AgentLease) -> None:
    assert agent_lease(msgspec.json.decode(json.dumps(tree), type=Lease)) == expected
