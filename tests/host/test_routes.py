"""Routes between hosts, in real network namespaces: made, changed, taken away, and nobody else's touched."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import pytest

from clusters.hosts import LISTENING, Cloud, Host, a_cloud, can_connect, eventually
from protokube.agent.cluster.routes_plan import Node, plan
from protokube.config.podranges import PodRange
from protokube.errors import TryLater
from protokube.host import Route
from protokube.host.routes import HostRoutes
from protokube.local.host import network


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with a_cloud() as made:
        yield made


@pytest.fixture
def host(cloud: Cloud) -> Host:
    return cloud.start("h1", 11)


def ours(destination: str, via: str) -> Route:
    return Route(destination=destination, via=via, ours=True)


def read(host: Host) -> set[Route]:
    with network.enter(Path(f"/proc/{host.pid}/ns/net")):
        return set(HostRoutes().read())


def change(host: Host, remove: list[Route], add: list[Route]) -> None:
    with network.enter(Path(f"/proc/{host.pid}/ns/net")):
        HostRoutes().change(remove, add)


def shown(host: Host) -> str:
    return subprocess.run(host.enter("ip", "route"), capture_output=True, text=True, check=True).stdout


def test_routes_of_the_machine_are_seen_and_are_not_ours(host: Host) -> None:
    (cable,) = [route for route in read(host) if route.destination == "10.77.0.0/24"]
    assert (cable.via, cable.ours) == ("", False)


def test_a_route_of_ours_is_made_known_again_and_taken_away(host: Host) -> None:
    before, one = read(host), ours("100.96.2.0/24", "10.77.0.12")
    change(host, [], [one])
    assert read(host) == before | {one}
    change(host, [one], [ours("100.96.2.0/24", "10.77.0.13")])
    assert read(host) == before | {ours("100.96.2.0/24", "10.77.0.13")}
    change(host, [ours("100.96.2.0/24", "10.77.0.13")], [])
    assert read(host) == before


def test_a_single_address_and_another_family_are_ours_like_any_other(host: Host) -> None:
    host.run("ip", "-6", "address", "add", "fd77::11/64", "dev", "eth0", "nodad")
    wanted = {ours("100.96.2.7/32", "10.77.0.12"), ours("fd00:2::/64", "fd77::12")}
    change(host, [], sorted(wanted, key=str))
    assert {route for route in read(host) if route.ours} == wanted


def test_a_route_of_somebody_else_is_neither_replaced_nor_removed(host: Host) -> None:
    host.run("ip", "route", "add", "100.96.2.0/24", "via", "10.77.0.12")
    before = shown(host)
    with pytest.raises(TryLater):
        change(host, [], [ours("100.96.2.0/24", "10.77.0.13")])
    with pytest.raises(TryLater):
        change(host, [ours("100.96.2.0/24", "10.77.0.12")], [])
    assert shown(host) == before


def test_one_that_cannot_be_made_does_not_keep_the_others_from_being_made(host: Host) -> None:
    nowhere, good = ours("100.96.2.0/24", "192.0.2.1"), ours("100.96.3.0/24", "10.77.0.12")
    with pytest.raises(TryLater, match="not every route"):
        change(host, [], [nowhere, good])
    assert {route for route in read(host) if route.ours} == {good}


def test_pods_of_two_hosts_reach_each_other_by_what_was_planned(cloud: Cloud) -> None:
    pair = [cloud.start("a", 11), cloud.start("b", 12, units={"listener.service": LISTENING})]
    nodes = [
        Node(name=host.spec.name, addresses=(host.spec.address,), ranges=(f"100.96.{number}.0/24",))
        for number, host in enumerate(pair)
    ]
    for number, host in enumerate(pair):  # stands for the bridge that pods are on
        host.run("ip", "link", "add", "pods0", "type", "bridge")
        host.run("ip", "address", "add", f"100.96.{number}.1/24", "dev", "pods0")
        host.run("ip", "link", "set", "pods0", "up")
        pods = PodRange(network=ip_network("100.96.0.0/16"), node_mask=24)
        chosen = plan(read(host), nodes, host.spec.name, [host.spec.address], [pods])
        change(host, list(chosen.remove), list(chosen.add))
    eventually(lambda: can_connect(pair[0], "100.96.1.1", 7000))
