"""Hosts reach the outside through the user's machine, or do not; and nothing is put into that machine's network.

The laptop and the outside are network namespaces of the test. Who got out is told by servers that count.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dns.message
import pytest

from helpers_cluster_census import Census
from helpers_daemon import RealCloud, until
from helpers_outside import LAPTOP, LONG, LONG_NAME, RESOLVER, WEB, WEB_NAME, World, a_world, way_outside
from protokube.errors import InvalidRequest
from protokube.local import cleanup, network, remains

FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"
ADDRESSES = "import socket, sys; print(*socket.gethostbyname_ex(sys.argv[1])[2])"
ASK_BY_UDP = """
import socket, sys
asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asking.settimeout(10)
asking.sendto(bytes.fromhex(sys.argv[2]), (sys.argv[1], 53))
print(asking.recv(1000).hex())
"""
CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
except OSError as why:
    print(why.strerror)
"""


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


def run(cloud: RealCloud, host: dict[str, Any], code: str, *arguments: str) -> str:
    ran = cloud.inside(host, "python3", "-I", "-c", code, *arguments)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def fetch(cloud: RealCloud, host: dict[str, Any], url: str = f"http://{WEB_NAME}/") -> str:
    """The address that the server outside sees; an error fails the test."""
    return run(cloud, host, FETCH, url)


def error_of_connecting(cloud: RealCloud, host: dict[str, Any], address: str, port: int) -> str:
    return run(cloud, host, CONNECT, address, str(port))


def interfaces(switch: str) -> set[str]:
    with network.enter(network.switch_path(switch)):
        return {name for _, name in socket.if_nameindex()}


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


def a_pod(cloud: RealCloud, host: dict[str, Any], number: int) -> None:
    """As the bridge plugin makes it: a network of its own on a bridge of the host, with an address of its range."""
    script = f"""
        echo 1 > /proc/sys/net/ipv4/ip_forward
        ip link add pods0 type bridge
        ip address add 100.96.{number}.1/24 dev pods0
        ip link set pods0 up
        ip netns add pod
        ip link add pod0 type veth peer name eth0 netns pod
        ip link set pod0 master pods0 up
        ip -n pod address add 100.96.{number}.5/24 dev eth0
        ip -n pod link set eth0 up
        ip -n pod route add default via 100.96.{number}.1
    """
    made = cloud.inside(host, "sh", "-ec", script)
    assert made.returncode == 0, made.stderr


def fetch_from_pod(cloud: RealCloud, host: dict[str, Any]) -> str:
    ran = cloud.inside(host, "nsenter", "--net=/run/netns/pod", "python3", "-I", "-c", FETCH, f"http://{WEB}/")
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


@pytest.mark.parametrize("asked", [False, True])
def test_from_isolated_hosts_nothing_gets_out(world: World, cloud: RealCloud, asked: bool) -> None:
    (host,) = cloud.group("master-a")
    if asked:
        cloud.admin.call("set_outside", **way_outside(isolated=True))
    assert error_of_connecting(cloud, host, WEB, 80) == "No route to host"
    assert error_of_connecting(cloud, host, RESOLVER, 53) == "No route to host"
    assert cloud.inside(host, "python3", "-I", "-c", ADDRESSES, WEB_NAME).returncode != 0
    assert remains.outsiders(cloud.paths) == []
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


def test_a_way_outside_that_was_killed_comes_back(world: World, cloud: RealCloud) -> None:
    (host,) = cloud.group("master-a")
    cloud.admin.call("set_outside", **way_outside())
    (killed,) = remains.outsiders(cloud.paths)

    os.kill(killed, signal.SIGKILL)

    until(lambda: killed not in (now := remains.outsiders(cloud.paths)) and now)
    until(lambda: cloud.admin.call("about")["outside"]["reached"])
    assert fetch(cloud, host) == LAPTOP
    assert "no way outside, next attempt in 0.2 s: slirp4netns ended with -9" in cloud.log()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_way_outside_ends_with_its_daemon_and_the_next_one_makes_it_again(
    world: World, cloud: RealCloud, number: signal.Signals
) -> None:
    (host,) = cloud.group("master-a")
    cloud.admin.call("set_outside", **way_outside())
    (before,) = remains.outsiders(cloud.paths)

    cloud.end(number)
    until(lambda: remains.outsiders(cloud.paths) == [])
    until(lambda: "tap0" not in interfaces(cloud.paths.switch))
    assert error_of_connecting(cloud, host, WEB, 80) == "No route to host"
    assert world.web.seen == []

    cloud.start()
    until(lambda: cloud.admin.call("about")["outside"]["reached"])
    assert remains.outsiders(cloud.paths) != [before]
    assert fetch(cloud, host) == LAPTOP


def test_down_leaves_no_process_device_or_namespace(world: World, cloud: RealCloud) -> None:
    cloud.group("master-a")
    cloud.admin.call("set_outside", **way_outside())
    (pid,) = remains.outsiders(cloud.paths)
    assert f"way outside: process {pid}" in cleanup.leftovers(cloud.paths)
    census = Census.of(cloud.paths)
    assert pid in {each for each, _ in census.processes}

    done = cleanup.remove(cloud.paths)

    census.nothing_is_left()
    assert f"removed the network namespace {cloud.paths.switch}" in done
    assert cleanup.leftovers(cloud.paths) == []


def test_the_network_of_the_laptop_is_the_same_before_during_and_after(world: World, tmp_path: Path) -> None:
    warm_up(world)
    before = world.laptop_network()
    mounts = mounts_of_the_machine(world)
    with RealCloud(tmp_path / "dev.test", world.within) as cloud:
        cloud.start()
        cloud.admin.call("set_dns", zones=["dev.test"], keys=[])
        (host,) = cloud.group("master-a")
        cloud.admin.call("set_outside", **way_outside())
        assert fetch(cloud, host) == LAPTOP
        assert world.laptop_network() == before
        assert mounts_of_the_machine(world) == mounts, "its sandbox unmounts only what is its own"
    assert world.laptop_network() == before
    assert mounts_of_the_machine(world) == mounts


def mounts_of_the_machine(world: World) -> list[str]:
    """Those of named networks as far as they are ours: other clusters come and go."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    ours = (world.laptop, world.outside)
    return [line for line in lines if "/run/netns/" not in line or any(name in line for name in ours)]


def warm_up(world: World) -> None:
    """The laptop gets to know its neighbours."""
    with network.enter(network.switch_path(world.laptop)):
        for address in (WEB, RESOLVER):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
                asking.sendto(b"", (address, 9))
    until(lambda: world.laptop_network()["neighbours"] == f"{WEB} {RESOLVER}")


def test_a_program_that_does_not_start_is_told_and_leaves_hosts_isolated(world: World, cloud: RealCloud) -> None:
    (host,) = cloud.group("master-a")
    state = cloud.admin.call("set_outside", **way_outside(program="/bin/false"))
    assert state["reached"] is False
    assert "slirp4netns does not start" in state["why"]
    assert error_of_connecting(cloud, host, WEB, 80) == "No route to host"


def test_what_cannot_be_a_way_outside_is_refused_and_changes_nothing(cloud: RealCloud) -> None:
    before = cloud.admin.call("about")["outside"]
    for wrong in ({"pods": ["100.96.0.0/11; link delete br0"]}, {"services": [1]}, {"colour": "red"}):
        with pytest.raises(InvalidRequest):
            cloud.admin.call("set_outside", **way_outside(**wrong))
    assert cloud.admin.call("about")["outside"] == before
