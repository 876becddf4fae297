"""The life of the way outside: killed, it comes back; it ends with its daemon; and it leaves nothing anywhere."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.daemon import RealCloud, until
from clusters.machine_census import Census
from clusters.outside_hosts import error_of_connecting, fetch, interfaces
from fakes.outside_world import LAPTOP, RESOLVER, WEB, World, a_world, way_outside
from protokube.local.cloud import cleanup
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


def test_a_way_outside_that_was_killed_comes_back(world: World, cloud: RealCloud) -> None:
    (host,) = cloud.group("master-a")
    cloud.admin.call("set_outside", **way_outside())
    (killed,) = leftovers.outside_processes(cloud.paths)

    os.kill(killed, signal.SIGKILL)

    until(lambda: killed not in (now := leftovers.outside_processes(cloud.paths)) and now)
    until(lambda: cloud.admin.call("about")["outside"]["reached"])
    assert fetch(cloud, host) == LAPTOP
    assert "no way outside, next attempt in 0.2 s: slirp4netns ended with -9" in cloud.log()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_way_outside_ends_with_its_daemon_and_the_next_one_makes_it_again(
    world: World, cloud: RealCloud, number: signal.Signals
) -> None:
    (host,) = cloud.group("master-a")
    cloud.admin.call("set_outside", **way_outside())
    (before,) = leftovers.outside_processes(cloud.paths)

    cloud.end(number)
    until(lambda: leftovers.outside_processes(cloud.paths) == [])
    until(lambda: "tap0" not in interfaces(cloud.paths.switch))
    assert error_of_connecting(cloud, host, WEB, 80) == "No route to host"
    assert world.web.seen == []

    cloud.start()
    until(lambda: cloud.admin.call("about")["outside"]["reached"])
    assert leftovers.outside_processes(cloud.paths) != [before]
    assert fetch(cloud, host) == LAPTOP


def test_down_leaves_no_process_device_or_namespace(world: World, cloud: RealCloud) -> None:
    cloud.group("master-a")
    cloud.admin.call("set_outside", **way_outside())
    (pid,) = leftovers.outside_processes(cloud.paths)
    assert f"way outside: process {pid}" in leftovers.describe(cloud.paths)
    census = Census.of(cloud.paths)
    assert pid in {each for each, _ in census.processes}

    done = cleanup.remove(cloud.paths)

    census.nothing_is_left()
    assert f"removed the network namespace {cloud.paths.switch}" in done
    assert leftovers.describe(cloud.paths) == []


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
