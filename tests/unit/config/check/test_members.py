"""etcd members: an odd number, each on a master in a zone, and what a lost zone would take along."""

from __future__ import annotations

from typing import Any

import pytest

from builders.config import ZONES, a_group, completed, problems, the_problem, warnings
from protokube.errors import Problem

MASTERS = [a_group(f"m-{zone}", "Master", zones=[zone]) for zone in ZONES["aws"]]


def members_problem(members: list[dict[str, Any]], *groups: Any) -> Problem:
    return the_problem(*(groups or MASTERS), etcdClusters=[{"name": "main", "members": members}])


def three(**changed: Any) -> list[dict[str, Any]]:
    """Members a, b and c, of which one differs."""
    return [{"name": name, "instanceGroup": f"m-us-east-1{name}", **(changed if name == "b" else {})} for name in "abc"]


@pytest.mark.parametrize("count", [2, 4, 6])
def test_an_even_number_of_members_survives_no_more_than_one_less(count: int) -> None:
    found = problems(masters=count)

    assert set(found) == {"etcdClusters.main.members", "etcdClusters.events.members"}
    problem = found["etcdClusters.main.members"]
    assert problem.message.startswith(f"{count} members tolerate no more failures than {count - 1}")
    assert problem.hint == f"use {count - 1} or {count + 1}"
    assert str(problem.where) == "spec.yaml:11"


@pytest.mark.parametrize("count", [1, 3, 5, 7, 9])
def test_an_odd_number_is_fine(count: int) -> None:
    assert len(completed(masters=count).cluster["etcdClusters"]["main"]["members"]) == count


def test_a_cluster_without_members_is_a_problem() -> None:
    problem = members_problem([])

    assert (problem.path, problem.message, problem.hint) == (
        "etcdClusters.main.members",
        "etcd main has no member",
        "1, 3 or 5",
    )


@pytest.mark.parametrize("fields", [[], [{"name": "events"}]])
def test_there_is_a_main_cluster(fields: list[dict[str, str]]) -> None:
    problem = the_problem(etcdClusters=fields)

    assert (problem.path, problem.message) == ("etcdClusters", "there is no cluster `main`")


@pytest.mark.parametrize("name", ["Foo", "a b", "x_y", "-a", "a.b"])
def test_names_of_clusters_and_members_become_parts_of_dns_names(name: str) -> None:
    cluster = the_problem(etcdClusters=[{"name": "main"}, {"name": name}])
    member = members_problem([{"name": name, "instanceGroup": "m"}], a_group("m", "Master", zones=["us-east-1a"]))

    assert cluster.path == f"etcdClusters.{name}"
    assert member.path == f"etcdClusters.main.members.{name}"
    assert cluster.message == member.message == f"{name!r} cannot be a part of a DNS name"


def test_a_member_names_a_group_of_masters_that_exists() -> None:
    assert members_problem(three(instanceGroup="m-us-east-1x")).message == "there is no group 'm-us-east-1x'"
    nodes = members_problem(three(instanceGroup="nodes"))
    assert nodes.message == "'nodes' is a group of role Node"
    assert nodes.hint == "members run on masters"


def test_a_member_whose_name_tells_nothing_must_name_its_group() -> None:
    problem = members_problem([{"name": "a"}, {"name": "b"}, {"name": "zebra"}])

    assert (problem.path, problem.message) == ("etcdClusters.main.members.zebra.instanceGroup", "is not given")
    assert problem.hint == "one of m-us-east-1a, m-us-east-1b, m-us-east-1c"


def test_a_member_lies_where_its_group_has_machines() -> None:
    elsewhere = members_problem(three(zone="us-east-1c"))
    nowhere = members_problem(three(zone="us-east-1z"))

    assert elsewhere.message == "group 'm-us-east-1b' has no machine in 'us-east-1c'"
    assert "m-us-east-1b is in us-east-1b" in elsewhere.hint
    assert nowhere.message == "'us-east-1z' is not a zone of this cluster"


def test_a_group_that_stands_nowhere_cannot_hold_a_disk() -> None:
    groups = [a_group("m", "Master", zones=[])]

    assert problems(*groups)["etcdClusters.main.members.m.zone"].message == "group 'm' has no zone"


def test_a_machine_holds_one_member_of_each_cluster() -> None:
    members = [{"name": name, "instanceGroup": "m"} for name in "abc"]
    problem = members_problem(members, a_group("m", "Master", minSize=1, maxSize=2, zones=["us-east-1a"]))

    assert problem.message == "3 members need a machine of 'm', which has 2 at most"
    assert "give each member a group" in problem.hint


def test_one_group_with_room_for_all_members_is_fine() -> None:
    members = [{"name": name, "instanceGroup": "m"} for name in "abc"]

    completed(
        a_group("m", "Master", minSize=3, maxSize=3, zones=["us-east-1a"]),
        etcdClusters=[{"name": "main", "members": members}],
    )


def test_a_group_scaled_to_nothing_is_a_warning() -> None:
    sizes = (0, 1, 1)
    groups = [
        a_group(name, "Master", zones=each["zones"], minSize=size, maxSize=size)
        for (name, each), size in zip(MASTERS, sizes, strict=True)
    ]
    config = completed(*groups)

    assert "is scaled to 0, so no machine holds its member" in warnings(config)["etcdClusters.main.members"].message


@pytest.mark.parametrize(
    ("zones", "masters", "zone", "lost"),
    [
        (2, 3, "us-east-1a", 2),
        (2, 5, "us-east-1a", 3),
        (3, 5, None, 0),
        (3, 3, None, 0),
        (1, 3, None, 0),
        (2, 1, None, 0),
    ],
)
def test_two_zones_cannot_survive_the_loss_of_either(zones: int, masters: int, zone: str | None, lost: int) -> None:
    warning = warnings(completed(zones=ZONES["aws"][:zones], masters=masters))

    if zone is None:
        assert warning == {}
    else:
        assert warning["etcdClusters.main.members"].message == (
            f"losing zone {zone} takes {lost} of {masters} members of etcd main, and with them the quorum"
        )
        assert warning["etcdClusters.main.members"].hint == "spread the members over three zones or more"
        assert str(warning["etcdClusters.events.members"].where) == "spec.yaml:7"


@pytest.mark.parametrize("field", ["clientPort", "peerPort", "metricsPort"])
def test_no_two_of_a_masters_ports_are_the_same(field: str) -> None:
    with_api = the_problem(etcdClusters=[{"name": "main", field: 443}])
    with_other = the_problem(etcdClusters=[{"name": "main"}, {"name": "events", field: 4001}])

    assert with_api.message == "443 is also the port of kubeAPIServer.securePort"
    assert with_other.message == "4001 is also the port of etcdClusters.main.clientPort"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"heartbeatInterval": "250ms"}, "1000ms is less than five times heartbeatInterval, 250ms"),
        ({"leaderElectionTimeout": "400ms"}, "400ms is less than five times heartbeatInterval, 100ms"),
        ({"heartbeatInterval": "0"}, "1000ms is less than five times heartbeatInterval, 0ms"),
        ({"heartbeatInterval": "-1s"}, "1000ms is less than five times heartbeatInterval, -1000ms"),
        ({"leaderElectionTimeout": "1m"}, "60000ms is more than 50000ms, the maximum of etcd"),
    ],
)
def test_times_with_which_etcd_would_not_start_are_a_problem(fields: dict[str, str], message: str) -> None:
    problem = the_problem(etcdClusters=[{"name": "main", **fields}])

    assert (problem.path, problem.message) == ("etcdClusters.main.leaderElectionTimeout", message)
    assert problem.where is not None


def test_times_etcd_takes_are_fine() -> None:
    completed(etcdClusters=[{"name": "main", "heartbeatInterval": "200ms", "leaderElectionTimeout": "1s"}])
    completed(etcdClusters=[{"name": "main", "heartbeatInterval": "+100ms", "leaderElectionTimeout": "50s"}])
