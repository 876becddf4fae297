"""What a view of a cluster says by itself: whether it is ready, what it lacks, and how long things have lasted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.view import (
    CLUSTER,
    a_disk,
    a_generation,
    a_host,
    a_member,
    a_note,
    a_view,
    an_agent,
    but,
    listed,
    names_of,
)
from protokube.view.cluster import ClusterView
from protokube.view.values import DaemonView


def test_a_cluster_in_which_everything_is_in_order_is_ready() -> None:
    view = a_view()

    assert view.lacks == ()
    assert view.ready


VIEW = a_view()
BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "the cloud does not run": (
        {"daemon": DaemonView(alive=False, why="Connection refused")},
        "the local cloud does not run: Connection refused",
    ),
    "no host of a group starts": (
        {"daemon": DaemonView(alive=True, not_starting={"master-a": "its root cannot be made (mount at /)"})},
        "no host of master-a starts: its root cannot be made (mount at /)",
    ),
    "no member is known": ({"members": ()}, "nothing is known of its members yet"),
    "a member does not answer": (
        {"members": but(VIEW.members, 1, healthy=False, why="timed out")},
        "etcd-b on master-1 is not healthy: timed out",
    ),
    "a member has no volume": ({"members": but(VIEW.members, 1, volume=None, host=None)}, "etcd-b has no volume"),
    "a volume is free": ({"members": but(VIEW.members, 1, host=None)}, "vol-bbbb of etcd-b is attached to nobody"),
    "a member is a learner": ({"members": but(VIEW.members, 2, learner=True)}, "etcd-c on master-2 is still a learner"),
    "a member is of another cluster": (
        {"members": but(VIEW.members, 2, cluster_id=0xDD)},
        "the members of main are of different clusters: etcd-a c1, etcd-b c1, etcd-c dd",
    ),
    "two leaders": ({"members": but(VIEW.members, 2, leader_id=0xA2)}, "the members of main do not follow one leader"),
    "a leader that is nobody": (
        {"members": tuple(replace(each, leader_id=0xFF) for each in VIEW.members)},
        "the leader of main is none of its members that answer",
    ),
    "two lists": (
        {"members": but(VIEW.members, 0, listed=listed(("a", "b")))},
        "the members of main do not list the same members",
    ),
    "no record": ({"generations": {}}, "the generation record of main is missing or cannot be read"),
    "a record that cannot be read": (
        {"generations": {"main": None}},
        "the generation record of main is missing or cannot be read",
    ),
    "creation is open": ({"generations": {"main": a_generation(open=True)}}, "the creation of main is not closed yet"),
    "a volume is not formed": (
        {"disks": but(VIEW.disks, 0, mark="forming")},
        "vol-aaaa (main/a) is marked forming, not formed",
    ),
    "a volume is being formatted": (
        {"disks": but(VIEW.disks, 0, mark="formatting:12ab")},
        "vol-aaaa (main/a) is marked formatting, not formed",
    ),
    "a volume is not marked": (
        {"disks": but(VIEW.disks, 0, mark="")},
        "vol-aaaa (main/a) is marked nothing, not formed",
    ),
    "a name points elsewhere": (
        {"records": names_of({"a": "10.77.0.99", "b": "10.77.0.12", "c": "10.77.0.13"})},
        f"etcd-a.internal.{CLUSTER} points at 10.77.0.99, not at master-0 (10.77.0.11)",
    ),
    "the API's name points at the dead": (
        {"hosts": (), "members": VIEW.members},
        f"api.internal.{CLUSTER} points at 10.77.0.11, 10.77.0.12, 10.77.0.13, where no master lives",
    ),
    "the API has no name": (
        {"records": tuple(each for each in VIEW.records if not each.name.startswith("api."))},
        f"api.internal.{CLUSTER} has no address yet",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_one_thing_out_of_order_is_enough_not_to_be_ready_and_is_said(what: str) -> None:
    changes, sentence = BROKEN[what]
    view = a_view(**changes)

    assert not view.ready
    assert sentence in view.lacks


def test_only_the_name_inside_has_to_have_an_address() -> None:
    assert not any(each.name == f"api.{CLUSTER}" for each in a_view().records)
    assert a_view().ready


def test_two_etcd_clusters_have_a_leader_and_a_cluster_id_each() -> None:
    events = tuple(
        replace(each, member=each.member.replace("main", "events"), id=each.id + 0x10, cluster_id=0xE1, leader_id=0xB1)
        for each in VIEW.members
    )
    view = a_view(members=(*VIEW.members, *events), generations={"main": a_generation(), "events": a_generation()})

    assert view.lacks == ()


@settings(deadline=None)  # a busy machine is no bug
@given(st.sets(st.integers(0, 2)), st.sets(st.integers(0, 2)))
def test_a_cluster_is_ready_exactly_if_no_member_is_ill_and_no_disk_unformed(ill: set[int], unformed: set[int]) -> None:
    members = tuple(replace(each, healthy=number not in ill) for number, each in enumerate(VIEW.members))
    disks = tuple(
        replace(each, mark="forming" if number in unformed else "formed") for number, each in enumerate(VIEW.disks)
    )

    assert a_view(members=members, disks=disks).ready == (not ill and not unformed)


def test_a_wait_lasts_from_when_the_agent_began_it_until_now() -> None:
    told = a_note("vol-aaaa is being formatted", about="main/a", lasted=7)
    view = a_view(agents=(an_agent(0, age=3.0, waits=(told,)),))

    (wait,) = view.waits
    assert (wait.host, wait.note.text, wait.seconds) == ("master-0", "vol-aaaa is being formatted", 10.0)


def test_a_wait_that_has_just_begun_has_lasted_as_long_as_the_report_is_old() -> None:
    view = a_view(agents=(an_agent(0, age=0.5, waits=(a_note("quorum"),)),))

    assert [wait.seconds for wait in view.waits] == [0.5]


def test_a_host_that_is_gone_or_declared_dead_says_nothing_any_more() -> None:
    note = a_note("refused")
    agents = tuple(an_agent(number, person=(note,), waits=(note,), bugs=(note,)) for number in range(3))
    hosts = (a_host(0, alive=False), a_host(1, dead=True), a_host(2))
    view = a_view(hosts=hosts, agents=agents)

    assert [each.host for each in view.person] == ["master-2"]
    assert [each.host for each in view.waits] == ["master-2"]
    assert [each.host for each in view.bugs] == ["master-2"]


def test_things_are_found_by_their_names() -> None:
    view = a_view()

    assert view.host("master-1") == a_host(1)
    assert view.disk("vol-cccc") == a_disk("c")
    assert view.member("main/b") == a_member("b")
    assert (view.host(None), view.disk("vol-x"), view.member("main/x")) == (None, None, None)
    assert view.listed("main") == listed()
    assert view.listed("events") == ()


def test_a_view_is_a_value() -> None:
    assert a_view() == a_view()
    assert isinstance(a_view(), ClusterView)
