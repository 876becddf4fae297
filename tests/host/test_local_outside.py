"""Hosts reach the outside through the user's machine, or do not; and nothing is put into that machine's network.

The laptop and the outside are network namespaces of the test. Who got out is told by servers that count.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dns.message
import pytest

from clusters.daemon import RealCloud, until
from clusters.outside_hosts import (
    ADDRESSES,
    ASK_BY_UDP,
    a_pod,
    error_of_connecting,
    fetch,
    fetch_from_pod,
    interfaces,
    run,
)
from fakes.outside_world import LAPTOP, LONG, LONG_NAME, RESOLVER, WEB, WEB_NAME, World, a_world, way_outside
from protokube.errors import InvalidRequest
from protokube.local.host import leftovers, network


@pytest.fixture
def world() -> Iterator[World]:
    with a_world() as made:
        yield made


@pytest.fixture
def cloud(world: World, tmp_path: Path) -> Iterator[RealCloud]:
    with RealCloud(tmp_path / "dev.test", world.within) as made:
        made.start()
        made.admin.call("set_dns", zones=["dev.test"], keys=[])
        yield made


def test_a_host_fetches_by_name_from_outside_and_is_seen_as_the_laptop(world: World, cloud: RealCloud) -> None:
    (host,) = cloud.group("master-a")
    state = cloud.admin.call("set_outside", **way_outside())
    assert state == {"isolated": False, "reached": True, "why": ""}

    assert fetch(cloud, host) == LAPTOP
    assert world.web.seen == [(LAPTOP, "/")]
    assert world.names.sources == {LAPTOP}
    assert f"{WEB_NAME} A udp" in world.names.wanted


def test_what_a_host_sends_by_udp_is_answered_to_it(world: World, cloud: RealCloud) -> None:
    (host,) = cloud.group("master-a")
    cloud.admin.call("set_outside", **way_outside())
    query = dns.message.make_query(WEB_NAME, "A").to_wire()
    answer = bytes.fromhex(run(cloud, host, ASK_BY_UDP, RESOLVER, query.hex()))
    assert dns.message.from_wire(answer).answer[0][0].to_text() == WEB
    assert world.names.seen == [(LAPTOP, f"{WEB_NAME} A udp")]


def test_a_host_that_starts_later_gets_out_as_well(world: World, cloud: RealCloud) -> None:
    cloud.admin.call("set_outside", **way_outside())
    (host,) = cloud.group("master-a")
    assert fetch(cloud, host) == LAPTOP


def test_an_answer_that_is_too_long_for_udp_is_asked_for_by_tcp(world: World, cloud: RealCloud) -> None:
    (host,) = cloud.group("master-a")
    cloud.admin.call("set_outside", **way_outside())

    assert set(run(cloud, host, ADDRESSES, LONG_NAME).split()) == set(LONG)

    assert {f"{LONG_NAME} A udp", f"{LONG_NAME} A tcp"} <= set(world.names.wanted)


def test_names_of_the_cluster_are_answered_here_and_never_asked_for_outside(world: World, cloud: RealCloud) -> None:
    (host,) = cloud.group("master-a")
    cloud.admin.call("set_outside", **way_outside())

    assert run(cloud, host, ADDRESSES, "ns.dev.test") == network.GATEWAY
    for name in ("none.dev.test", "web.default.svc.cluster.local"):
        assert cloud.inside(host, "python3", "-I", "-c", ADDRESSES, name).returncode != 0
    for address in ("10.77.0.11", "100.96.1.5", "100.64.0.10"):
        run(cloud, host, f"import socket; print(socket.getfqdn({address!r}))")

    assert world.names.seen == []
    run(cloud, host, f"import socket; print(socket.getfqdn({WEB!r}))")
    assert world.names.wanted, "the reverse of an address outside is"


def test_a_laptop_that_changes_networks_is_asked_where_it_is_now(world: World, cloud: RealCloud) -> None:
    (host,) = cloud.group("master-a")
    world.resolv_conf.write_text("nameserver 198.51.100.77\n")
    cloud.admin.call("set_outside", **way_outside())
    assert cloud.inside(host, "python3", "-I", "-c", ADDRESSES, WEB_NAME).returncode != 0
    assert until(lambda: "names of the outside: 198.51.100.77: " in cloud.log())

    world.resolv_conf.write_text(f"nameserver {RESOLVER}\n")

    assert run(cloud, host, ADDRESSES, WEB_NAME) == WEB


def test_a_host_does_not_reach_the_loopback_of_the_laptop(world: World, cloud: RealCloud) -> None:
    (host,) = cloud.group("master-a")
    cloud.admin.call("set_outside", **way_outside())
    for address in ("10.77.1.1", "10.77.1.2", "10.77.1.3", "10.77.1.100", "127.0.0.1"):
        assert error_of_connecting(cloud, host, address, 8080), address
    assert world.loopback.seen == []
    assert fetch(cloud, host) == LAPTOP, "and it does get out"


def test_addresses_of_the_cluster_and_link_local_ones_are_never_looked_for_outside(
    world: World, cloud: RealCloud
) -> None:
    (host,) = cloud.group("master-a")
    cloud.admin.call("set_outside", **way_outside())
    for address in ("100.64.0.10", "169.254.169.254", "10.77.1.9"):
        assert error_of_connecting(cloud, host, address, 80) == "No route to host", address


def test_what_pods_send_goes_out_through_their_host_and_comes_back_to_them(world: World, cloud: RealCloud) -> None:
    first, second = cloud.group("master-a", "master-b")
    cloud.admin.call("set_outside", **way_outside())
    for host, number in ((first, 1), (second, 2)):
        a_pod(cloud, host, number)
    assert [fetch_from_pod(cloud, host) for host in (first, second)] == [LAPTOP, LAPTOP]
    assert len(world.web.seen) == 2


@pytest.mark.parametrize("asked", [False, True])
def test_from_isolated_hosts_nothing_gets_out(world: World, cloud: RealCloud, asked: bool) -> None:
    (host,) = cloud.group("master-a")
    if asked:
        cloud.admin.call("set_outside", **way_outside(isolated=True))
    assert error_of_connecting(cloud, host, WEB, 80) == "No route to host"
    assert error_of_connecting(cloud, host, RESOLVER, 53) == "No route to host"
    assert cloud.inside(host, "python3", "-I", "-c", ADDRESSES, WEB_NAME).returncode != 0
    assert leftovers.outside_processes(cloud.paths) == []
    assert (world.web.seen, world.names.seen) == ([], [])
    state = cloud.admin.call("about")["outside"]
    assert (state["isolated"], state["reached"]) == (True if asked else None, False)
    assert ("--isolated" if asked else "`protokube up` decides") in state["why"]


def test_a_living_cluster_is_isolated_and_let_out_again(world: World, cloud: RealCloud) -> None:
    (host,) = cloud.group("master-a")
    a_pod(cloud, host, 1)
    cloud.admin.call("set_outside", **way_outside())
    assert (fetch(cloud, host), fetch_from_pod(cloud, host)) == (LAPTOP, LAPTOP)

    cloud.admin.call("set_outside", **way_outside(isolated=True))
    seen, asked = len(world.web.seen), len(world.names.seen)
    assert error_of_connecting(cloud, host, WEB, 80) == "No route to host"
    assert cloud.inside(host, "python3", "-I", "-c", ADDRESSES, WEB_NAME).returncode != 0
    forwarded = ("ip", "route", "get", WEB, "from", "100.96.1.5", "iif", "pods0")
    assert "via" not in cloud.inside(host, *forwarded).stdout
    assert (len(world.web.seen), len(world.names.seen)) == (seen, asked)
    assert interfaces(cloud.paths.switch) == {"lo", "br0", network.port(host["name"])}

    cloud.admin.call("set_outside", **way_outside())
    assert (fetch(cloud, host), fetch_from_pod(cloud, host)) == (LAPTOP, LAPTOP)


def test_what_cannot_be_a_way_outside_is_refused_and_changes_nothing(cloud: RealCloud) -> None:
    before = cloud.admin.call("about")["outside"]
    for wrong in ({"pods": ["100.96.0.0/11; link delete br0"]}, {"services": [1]}, {"colour": "red"}):
        with pytest.raises(InvalidRequest):
            cloud.admin.call("set_outside", **way_outside(**wrong))
    assert cloud.admin.call("about")["outside"] == before
