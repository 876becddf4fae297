"""The switch of a local cloud and its cables, in real network namespaces."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.hosts import LISTENING, Cloud, Host, a_cloud, can_connect, eventually, who_answers
from protokube.errors import Refused, TryLater
from protokube.local.host import hosts, network


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with a_cloud() as made:
        yield made


def interfaces() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


def addresses_in(switch: str) -> str:
    return subprocess.run(["ip", "-n", switch, "-br", "address"], capture_output=True, text=True, check=True).stdout


def error_of_connecting(host: Host, address: str, seconds: float = 10) -> str:
    code = f"import socket; socket.create_connection(({address!r}, 7000), {seconds})"
    return host.run("python3", "-c", code, check=False).stderr.splitlines()[-1]


def test_a_switch_has_a_bridge_with_the_address_of_the_resolver(cloud: Cloud) -> None:
    shown = addresses_in(cloud.switch)
    assert "br0" in shown
    assert "10.77.0.1/24" in shown
    assert "127.0.0.1/8" in shown


def test_making_a_switch_again_changes_nothing(cloud: Cloud) -> None:
    before = subprocess.run(["ip", "-n", cloud.switch, "address"], capture_output=True, check=True).stdout
    network.make_switch(cloud.switch)
    network.make_switch(cloud.switch)
    assert subprocess.run(["ip", "-n", cloud.switch, "address"], capture_output=True, check=True).stdout == before


def test_a_switch_without_its_bridge_is_made_whole(cloud: Cloud) -> None:
    subprocess.run(["ip", "-n", cloud.switch, "link", "delete", "br0"], check=True)
    network.make_switch(cloud.switch)
    assert "10.77.0.1/24" in addresses_in(cloud.switch)


def test_a_bridge_that_lost_its_address_gets_it_back(cloud: Cloud) -> None:
    subprocess.run(["ip", "-n", cloud.switch, "address", "flush", "dev", "br0"], check=True)
    network.make_switch(cloud.switch)
    assert "10.77.0.1/24" in addresses_in(cloud.switch)


def test_a_name_that_a_crash_left_without_a_namespace_is_used_again(cloud: Cloud) -> None:
    network.remove_switch(cloud.switch)
    network.switch_path(cloud.switch).touch()
    network.make_switch(cloud.switch)
    assert "10.77.0.1/24" in addresses_in(cloud.switch)


def test_a_removed_switch_is_gone_and_removing_it_again_is_fine(cloud: Cloud) -> None:
    network.remove_switch(cloud.switch)
    assert not network.switch_path(cloud.switch).exists()
    assert cloud.switch not in Path("/proc/self/mountinfo").read_text()
    network.remove_switch(cloud.switch)


def test_nothing_is_put_into_the_network_of_the_user(cloud: Cloud) -> None:
    before = interfaces()
    cloud.start("quiet", 11)
    assert not {"br0", "eth0", network.port("quiet")} & (interfaces() - before)
    assert "00004D0A" not in Path("/proc/net/route").read_text(), "a route to 10.77.0.0"


def test_a_socket_made_inside_stays_there_and_the_thread_comes_back(cloud: Cloud) -> None:
    home = Path("/proc/thread-self/ns/net").readlink()
    with network.enter(network.switch_path(cloud.switch)):
        assert Path("/proc/thread-self/ns/net").readlink() != home
        assert interfaces() == {"lo", "br0"}
        server = socket.create_server(("10.77.0.1", 5353))
    assert Path("/proc/thread-self/ns/net").readlink() == home
    with server:
        assert server.getsockname() == ("10.77.0.1", 5353)
        with pytest.raises(OSError, match="assign requested address"):
            socket.create_server(("10.77.0.1", 5354))


def test_an_error_inside_brings_the_thread_back_too(cloud: Cloud) -> None:
    home = Path("/proc/thread-self/ns/net").readlink()
    with pytest.raises(RuntimeError), network.enter(network.switch_path(cloud.switch)):
        raise RuntimeError
    assert Path("/proc/thread-self/ns/net").readlink() == home


def test_other_threads_stay_where_they_are(cloud: Cloud) -> None:
    seen: list[Path] = []
    home = Path("/proc/thread-self/ns/net").readlink()
    entered, looked = threading.Event(), threading.Event()

    def look() -> None:
        entered.wait(5)
        seen.append(Path("/proc/thread-self/ns/net").readlink())
        looked.set()

    other = threading.Thread(target=look)
    other.start()
    with network.enter(network.switch_path(cloud.switch)):
        entered.set()
        looked.wait(5)
    other.join()
    assert seen == [home]


def test_entering_a_namespace_that_is_not_there_is_for_later(cloud: Cloud) -> None:
    home = Path("/proc/thread-self/ns/net").readlink()
    with pytest.raises(TryLater, match="no network namespace"), network.enter(network.switch_path("pk-none")):
        pytest.fail("there is nothing to be in")
    assert Path("/proc/thread-self/ns/net").readlink() == home


def test_three_hosts_and_the_switch_reach_each_other(cloud: Cloud) -> None:
    three = [cloud.start(f"host-{n}", 10 + n, units={"tell.service": LISTENING}) for n in (1, 2, 3)]
    eventually(lambda: all(can_connect(three[0], f"10.77.0.{10 + n}", 7000) for n in (1, 2, 3)))
    for asking in three:
        assert who_answers(asking, "10.77.0.11", "10.77.0.12", "10.77.0.13") == "host-1 host-2 host-3"
    with network.enter(network.switch_path(cloud.switch)):
        link = socket.create_connection(("10.77.0.12", 7000), 5)
    with link:
        assert link.recv(99) == b"host-2"


def test_a_pulled_cable_is_silence_and_not_an_error_and_heals_when_plugged_in(cloud: Cloud) -> None:
    one = cloud.start("one", 11)
    cloud.start("two", 12, units={"tell.service": LISTENING})
    three = cloud.start("three", 13)
    assert eventually(lambda: can_connect(one, "10.77.0.12", 7000))

    network.cut(cloud.switch, "two", down=True)
    network.cut(cloud.switch, "two", down=True)
    assert "timed out" in error_of_connecting(one, "10.77.0.12", 0.3)
    assert "refused" in error_of_connecting(one, "10.77.0.13")  # the other cables are in

    network.cut(cloud.switch, "two", down=False)
    assert eventually(lambda: can_connect(one, "10.77.0.12", 7000))
    assert who_answers(three, "10.77.0.12") == "two"


def test_only_a_host_with_a_cable_can_be_cut_off(cloud: Cloud) -> None:
    with pytest.raises(TryLater, match="nobody has no cable"):
        network.cut(cloud.switch, "nobody", down=True)


def test_what_a_host_sends_beyond_the_cloud_has_a_way_that_rules_can_change_and_comes_back(cloud: Cloud) -> None:
    host = cloud.start("host", 11)
    for address in ("100.64.0.1", "192.0.2.1"):
        assert "via 10.77.0.1 " in host.run("ip", "route", "get", address).stdout
        assert "No route to host" in error_of_connecting(host, address), "it is told so, and does not wait"
    assert "via" not in host.run("ip", "route", "get", "10.77.0.99").stdout
    with network.enter(network.switch_path(cloud.switch)), socket.socket() as asking:
        asking.settimeout(5)
        with pytest.raises(OSError, match="No route to host"):
            asking.connect(("192.0.2.1", 7000))


def test_what_pods_of_a_host_send_to_nowhere_is_refused_by_the_host_itself(cloud: Cloud) -> None:
    host = cloud.start("host", 11)
    host.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
    host.run("ip", "link", "add", "pods", "address", "02:00:00:00:00:01", "type", "bridge")
    host.run("ip", "address", "add", "100.96.0.1/24", "dev", "pods")
    host.run("ip", "link", "set", "pods", "up")
    forwarded = host.run("ip", "route", "get", "192.0.2.1", "from", "100.96.0.2", "iif", "pods", check=False)
    assert "via" not in forwarded.stdout


def test_two_clouds_side_by_side_use_the_same_addresses_and_never_meet(cloud: Cloud) -> None:
    with a_cloud() as other:
        left = cloud.start("left", 11, units={"tell.service": LISTENING})
        other.start("right", 11, units={"tell.service": LISTENING})
        alone = other.start("alone", 12, units={"tell.service": LISTENING})
        eventually(lambda: can_connect(left, "10.77.0.11", 7000) and can_connect(alone, "10.77.0.12", 7000))
        assert who_answers(left, "10.77.0.11") == "left"
        assert not can_connect(left, "10.77.0.12", 7000, 0.3)


def test_a_new_host_with_an_old_name_takes_over_its_port(cloud: Cloud) -> None:
    first = cloud.start("again", 11)
    hosts.kill(first.pid)
    second = cloud.start("again", 12, units={"tell.service": LISTENING})  # the kernel may not have cleared away yet
    asking = cloud.start("asking", 13)
    assert eventually(lambda: can_connect(asking, "10.77.0.12", 7000))
    assert who_answers(asking, second.spec.address) == "again"


def test_names_of_ports_fit_and_differ() -> None:
    long = "master-" + "x" * 50
    names = {network.port(name) for name in ("master-1", "master-2", long, long + "1")}
    assert len(names) == 4
    assert all(len(name) <= 15 for name in names)


def test_a_host_is_not_plugged_into_a_switch_without_a_bridge(cloud: Cloud) -> None:
    subprocess.run(["ip", "-n", cloud.switch, "link", "delete", "br0"], check=True)
    with pytest.raises(Refused, match="host lost did not start: `ip -batch -` failed") as refused:
        cloud.start("lost", 11)
    assert "br0" in refused.value.saw
    eventually(lambda: network.port("lost") not in addresses_in(cloud.switch))


def test_a_switch_that_cannot_be_made_is_refused_with_what_ip_said() -> None:
    with pytest.raises(Refused, match="`ip netns add ") as refused:
        network.make_switch("pk/slash")
    assert "pk/slash" in refused.value.saw


def test_what_is_no_network_namespace_cannot_be_entered(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="cannot enter the network namespace"), network.enter(tmp_path / "file"):
        pytest.fail("a file is no namespace")
