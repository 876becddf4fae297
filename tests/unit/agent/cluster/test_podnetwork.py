"""The agent's step for pods' addresses and ways: what it does once the API server tells of the nodes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from builders.agent import Alone, a_round
from builders.config import completed
from clusters.scenario.edges import FakeClock, HostClock
from protokube.agent.cluster import podnetwork
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.config.podranges import PodRange
from protokube.errors import TryLater
from protokube.host import Route
from protokube.launch.derive import from_config
from protokube.manifests import cni


class Nodes:
    """An API server that knows of nodes only."""

    def __init__(self, *nodes: dict[str, Any]) -> None:
        self.nodes, self.asked = list(nodes), 0

    def get(self, path: str, **query: str) -> dict[str, Any]:
        assert path == "/api/v1/nodes"
        self.asked += 1
        return {"items": self.nodes}


class Silent:
    def get(self, path: str, **query: str) -> dict[str, Any]:
        raise TryLater("the API server does not answer")


class Table:
    """The routes of a machine that is not there."""

    def __init__(self, *routes: Route) -> None:
        self.routes = set(routes)

    def read(self) -> Sequence[Route]:
        return sorted(self.routes, key=str)

    def change(self, remove: Sequence[Route], add: Sequence[Route]) -> None:
        self.routes = (self.routes - set(remove)) | set(add)


def a_node(name: str, address: str, range_: str = "") -> dict[str, Any]:
    spec = {"podCIDR": range_} if range_ else {}
    return {
        "metadata": {"name": name},
        "spec": spec,
        "status": {"addresses": [{"type": "InternalIP", "address": address}]},
    }


ME, OTHER = a_node("i-1", "10.0.0.1", "100.96.0.0/24"), a_node("i-2", "10.0.0.2", "100.96.1.0/24")
NEAR = Route(destination="10.0.0.0/24", via="", ours=False)
TO_OTHER = Route(destination="100.96.1.0/24", via="10.0.0.2", ours=True)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def table() -> Table:
    return Table(Route(destination="default", via="10.0.0.254", ours=False), NEAR)


@pytest.fixture
def round_(tmp_path: Path, clock: FakeClock, table: Table) -> Round:
    wanted = replace(from_config(completed(cloud="local", name="laptop")), pod_network=True)
    presence = Alone({}, serving=["i-1"])
    return a_round(tmp_path, wanted=wanted, clock=HostClock(clock), routes=table, presence=presence)


def subnets(round_: Round) -> list[list[dict[str, str]]]:
    bridge = json.loads(round_.edges.inside(cni.FILE).read_text())["plugins"][0]
    found: list[list[dict[str, str]]] = bridge["ipam"]["ranges"]
    return found


def test_once_the_node_has_a_range_its_pods_have_a_network_and_ways_to_all_others(round_: Round, table: Table) -> None:
    round_.edges.kube = Nodes(ME, OTHER)  # type: ignore[assignment]
    podnetwork.sync(round_)
    assert subnets(round_) == [[{"subnet": "100.96.0.0/24"}]]
    assert TO_OTHER in table.routes
    assert "podnetwork pods get addresses of 100.96.0.0/24" in round_.report.sentence()


@pytest.mark.parametrize(
    ("nodes", "says"),
    [([OTHER], "is not registered yet"), ([a_node("i-1", "10.0.0.1"), OTHER], "has no range of pod addresses yet")],
)
def test_before_that_it_waits_and_says_for_what(
    round_: Round, table: Table, nodes: list[dict[str, Any]], says: str
) -> None:
    round_.edges.kube = Nodes(*nodes)  # type: ignore[assignment]
    podnetwork.sync(round_)
    assert says in round_.report.sentence()
    assert not round_.edges.inside(cni.FILE).exists()
    assert TO_OTHER not in table.routes


def test_it_asks_no_api_server_that_only_starts(round_: Round) -> None:
    """That one accepts connections and does not answer: the round, and etcd's steps with it, would wait for seconds."""
    round_.edges.presence = Alone({}, serving=["i-2"])
    round_.edges.kube = nodes = Nodes(ME, OTHER)  # type: ignore[assignment]

    podnetwork.sync(round_)

    assert nodes.asked == 0
    assert "podnetwork waits: the API server of this machine is not ready yet" in round_.report.sentence()


def test_a_network_that_was_there_is_kept_up_to_date_whether_or_not_the_masters_say_that_they_serve(
    round_: Round, clock: FakeClock, table: Table
) -> None:
    round_.edges.kube = Nodes(ME)  # type: ignore[assignment]
    podnetwork.sync(round_)
    round_.edges.presence = Alone(None)
    clock.advance(podnetwork.EVERY + 1)
    round_.edges.kube = Nodes(ME, OTHER)  # type: ignore[assignment]

    podnetwork.sync(round_)

    assert TO_OTHER in table.routes


def test_a_node_that_is_about_to_have_a_range_is_looked_at_often_and_one_that_never_gets_one_is_not(
    round_: Round, clock: FakeClock
) -> None:
    round_.edges.kube = Nodes(OTHER)  # type: ignore[assignment]

    podnetwork.sync(round_)

    assert round_.next_within == podnetwork.SOON
    clock.advance(podnetwork.PATIENCE + 1)
    round_.next_within = math.inf
    podnetwork.sync(round_)
    assert round_.next_within == math.inf


def test_an_api_server_that_is_silent_changes_nothing(round_: Round, table: Table, clock: FakeClock) -> None:
    round_.edges.kube = Nodes(ME, OTHER)  # type: ignore[assignment]
    podnetwork.sync(round_)
    before, written = set(table.routes), round_.edges.inside(cni.FILE).read_bytes()
    clock.advance(podnetwork.EVERY + 1)
    round_.edges.kube = Silent()  # type: ignore[assignment]
    with pytest.raises(TryLater):
        podnetwork.sync(round_)
    assert (table.routes, round_.edges.inside(cni.FILE).read_bytes()) == (before, written)


def test_the_nodes_are_asked_for_again_after_a_while_and_not_before(
    round_: Round, table: Table, clock: FakeClock
) -> None:
    round_.edges.kube = nodes = Nodes(ME, OTHER)  # type: ignore[assignment]
    podnetwork.sync(round_)
    nodes.nodes.remove(OTHER)
    podnetwork.sync(round_)
    assert (nodes.asked, TO_OTHER in table.routes) == (1, True)
    clock.advance(podnetwork.EVERY + 1)
    round_.report = Report()
    podnetwork.sync(round_)
    assert (nodes.asked, TO_OTHER in table.routes) == (2, False)
    assert "no longer 100.96.1.0/24 via 10.0.0.2" in round_.report.sentence()


def test_a_node_that_claims_the_address_of_a_master_gets_no_route_and_is_told(round_: Round, table: Table) -> None:
    round_.edges.kube = Nodes(ME, OTHER, a_node("evil", "10.0.0.99", "10.0.0.12/32"))  # type: ignore[assignment]
    podnetwork.sync(round_)
    assert {route.destination for route in table.routes} == {"default", "10.0.0.0/24", "100.96.1.0/24"}
    assert "podnetwork 10.0.0.12/32: waits: evil: its range is outside of the pods' 100.96.0.0/11" in (
        round_.report.sentence()
    )


def test_only_the_declared_pod_ranges_decide_what_is_routed(round_: Round, table: Table) -> None:
    declared = (PodRange(network=ip_network("100.96.0.0/11"), node_mask=25),)
    round_.wanted = replace(round_.wanted, pod_ranges=declared)  # the controller manager's flags still say /24
    round_.edges.kube = Nodes(ME, OTHER)  # type: ignore[assignment]
    podnetwork.sync(round_)
    assert TO_OTHER not in table.routes
    assert "i-2: its range is no /25, as that of every node is" in round_.report.sentence()


def test_launch_data_of_an_older_version_that_name_no_pod_ranges_cost_no_route(
    round_: Round, table: Table, clock: FakeClock
) -> None:
    round_.edges.kube = Nodes(ME, OTHER)  # type: ignore[assignment]
    podnetwork.sync(round_)
    clock.advance(podnetwork.EVERY + 1)
    round_.wanted = replace(round_.wanted, pod_ranges=())
    podnetwork.sync(round_)
    assert TO_OTHER in table.routes
    assert "routes stay as they are" in round_.report.sentence()


def test_where_others_see_to_it_nothing_is_asked_or_written(tmp_path: Path) -> None:
    round_ = a_round(tmp_path, kube=Nodes(ME, OTHER), routes=Table())
    podnetwork.sync(round_)
    assert not round_.edges.inside(cni.FILE).exists()
