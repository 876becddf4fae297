"""What fails around the agents, for real: the provider, the name server, a full disk, a clock that is an hour off.

Two clusters suffer them at the same time, each one fault after the other. Every time the agents go on, say what they
wait for, and recover by themselves; and whoever writes to etcd meanwhile is served by those that can.

`PROTOKUBE_FAULT_SECONDS` says how long each lasts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from clusters.broken_disks import fill_disk_of
from clusters.real import RealCluster, until
from protokube.local.drill.writer import WriteLog, as_found, lost, regressions
from protokube.local.host import network

LASTS = float(os.environ.get("PROTOKUBE_FAULT_SECONDS", "15"))
LONGEST_GAP = 10.0
"""Seconds without an acknowledged write on a busy machine, while a quorum is there: an election, and a lost call."""
HOUR = 3600.0


Fault = Callable[[RealCluster], None]


@pytest.fixture(scope="module")
def suffered() -> dict[Fault, BaseException | None]:
    """By fault: what went wrong with it. Each begins with a cluster that is ready: what it shows is its own doing."""
    results: dict[Fault, BaseException | None] = {}

    def work(faults: Sequence[Fault]) -> None:
        with RealCluster() as cluster:
            cluster.up()
            for fault in faults:
                cluster.until_ready()
                try:
                    fault(cluster)
                    results[fault] = None
                except BaseException as error:
                    results[fault] = error
                    raise

    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(work, faults) for faults in FAULTS]:
            each.exception()  # told by the test of its fault
    return results


def survived(suffered: dict[Fault, BaseException | None], fault: Fault) -> None:
    assert fault in suffered, "an earlier fault broke the cluster"
    if (error := suffered[fault]) is not None:
        raise error


@contextmanager
def written_through(cluster: RealCluster, *members: str) -> Iterator[None]:
    """Somebody writes all the while: no write is lost, none turns back in time, and no gap is long."""
    with cluster.writing(*members) as writer:
        until(lambda: len(writer.log().acknowledged) > 5, "the first writes")
        yield
        log: WriteLog = writer.stop()
    assert lost(log, as_found(cluster.client(timeout=10).read(log.prefix))) == ()
    assert regressions(log) == ()
    gap = log.longest_gap
    assert gap.seconds < LONGEST_GAP, f"nothing was acknowledged for {gap.seconds:.1f} s"


def lasting() -> float:
    return time.monotonic() + LASTS


def wait_for(end: float) -> None:
    time.sleep(max(end - time.monotonic(), 0))


def waits(cluster: RealCluster, step: str, about: str = "") -> list[str]:
    """What the agents say that this step waits for."""
    return [note["text"] for note in cluster.notes("waiting") if note["step"] == step and about in note["about"]]


def recovers(cluster: RealCluster) -> None:
    """Ready again, and nobody waits for anything or wants a person; `status --wait` ends where a person is wanted."""
    until(lambda: not cluster.notes("needsAPerson"), f"nobody wants a person any more: {cluster.notes('needsAPerson')}")
    cluster.until_ready()
    until(lambda: not cluster.notes("waiting"), f"nobody waits any more: {cluster.notes('waiting')}")
    assert cluster.notes("needsAPerson") == []
    assert cluster.notes("broken") == []


def a_follower(cluster: RealCluster) -> str:
    """`a`, `b` or `c`: one that does not lead."""
    return next(str(x["member"])[-1] for x in cluster.status()["members"] if not x["leader"])


def silent_provider(cluster: RealCluster) -> None:
    """And a master dies meanwhile: its successor cannot even ask who it is."""
    member = a_follower(cluster)
    old = cluster.host_of(member)
    before = {(host["name"], host["pid"]) for host in cluster.hosts() if host["name"] != old}
    with written_through(cluster):
        end = lasting()
        cluster.admin.call("api_down", seconds=3600)
        until(lambda: len(waits(cluster, "fence")) == 3, "all agents say that the provider is silent")
        said = waits(cluster, "fence")
        assert all("the local cloud does not answer list_volumes" in each for each in said)
        assert all("goes on, since the attachment is the lock" in each for each in said)
        until(lambda: len(cluster.healthy()) == 3, "all members serve meanwhile")

        cluster.admin.call("kill_host", host=old)
        new = until(lambda: successor(cluster, member, old), "a successor")
        log = cluster.paths.host(new) / "var/log/protokube.service.log"
        until(lambda: log.exists() and "waiting for the provider" in log.read_text(), "it says that it cannot begin")
        wait_for(end)
        assert cluster.volume(member)["attached_to"] is None
        assert len(waits(cluster, "fence")) == 2

        cluster.admin.call("api_down", seconds=0)
        recovers(cluster)
    assert cluster.host_of(member) == new
    assert {(host["name"], host["pid"]) for host in cluster.hosts() if host["name"] != new} == before


def test_a_provider_that_does_not_answer_stops_nobody(suffered: dict[Fault, BaseException | None]) -> None:
    survived(suffered, silent_provider)


def successor(cluster: RealCluster, member: str, old: str) -> str:
    return next((h["name"] for h in cluster.hosts() if h["group"] == f"master-{member}" and h["name"] != old), "")


@contextmanager
def no_answers_from_port_53(cluster: RealCluster) -> Iterator[None]:
    """Nothing that it says reaches any host: the switch throws it away."""
    rules = [["ip", "rule", "{}", "ipproto", protocol, "sport", "53", "blackhole"] for protocol in ("udp", "tcp")]

    def change(what: str) -> None:
        with network.enter(network.switch_path(cluster.paths.switch)):
            for rule in rules:
                subprocess.run([word.format(what) for word in rule], check=True)

    change("add")
    try:
        yield
    finally:
        change("delete")


def silent_name_server(cluster: RealCluster) -> None:
    member = a_follower(cluster)
    old = cluster.host_of(member)
    name = f"etcd-{member}.internal.{cluster.name}"
    with written_through(cluster):
        with no_answers_from_port_53(cluster):
            end = lasting()
            cluster.admin.call("kill_host", host=old)
            until(lambda: waits(cluster, "names", name), "the successor says that it cannot publish its name")
            until(lambda: waits(cluster, "etcd", f"main/{member}"), "and that its etcd has to wait for that")
            wait_for(end)

            assert any("peers would turn us away" in each for each in waits(cluster, "etcd", f"main/{member}"))
            others = {f"main/{each}" for each in "abc" if each != member}
            until(lambda: cluster.healthy() == others, "the others serve, and it does not")
        recovers(cluster)


def test_a_name_server_that_does_not_answer_holds_up_nobody_but_newcomers(
    suffered: dict[Fault, BaseException | None],
) -> None:
    survived(suffered, silent_name_server)


def full_disk(cluster: RealCluster) -> None:
    member = a_follower(cluster)
    old = cluster.host_of(member)
    volume = cluster.volume(member)["id"]
    point = f"/mnt/master-{volume}"
    with written_through(cluster):
        end = lasting()
        fill_disk_of(cluster, member)
        assert cluster.inside(old, "cp", "/etc/passwd", f"{point}/more").returncode != 0, "it is not full"
        cluster.admin.call("kill_host", host=old)
        said = until(lambda: waits(cluster, "volumes", f"main/{member}"), "the successor says what it waits for")
        until(
            lambda: any("no space left on device" in x for x in waits(cluster, "volumes", f"main/{member}")),
            f"that the disk is full: {said}",
        )
        wait_for(end)

        assert any("writing the identity" in each for each in waits(cluster, "volumes", f"main/{member}"))
        assert not cluster.agents()[cluster.host_of(member)]["members"][0]["linked"]
        freed = cluster.inside(cluster.host_of(member), "rm", "-f", f"{point}/filler", f"{point}/more")
        assert freed.returncode == 0, freed.stderr
        recovers(cluster)


def test_a_full_disk_is_said_and_its_member_is_back_once_there_is_room(
    suffered: dict[Fault, BaseException | None],
) -> None:
    survived(suffered, full_disk)


ANOTHER_TIME = """
import os, runpy, sys, time
real = time.time

def now():
    try:
        return real() + float(open("/run/protokube/clock").read())
    except OSError:
        return real() + float(os.environ["CLOCK"])

time.time = now
sys.argv = ["protokube", "agent"]
runpy.run_module("protokube", run_name="__main__")
"""
"""The agent as it is, on a machine with another time of day. All Python code gets it from here, since a kernel cannot
give one host another time than the next. What waits goes by the other clock, which nobody can turn back."""


def wrong_clock(cluster: RealCluster) -> None:
    """First the clock of an agent that serves is turned ahead and back; then one starts with a wrong clock."""
    member = a_follower(cluster)
    group = f"master-{member}"
    right = cluster.template(group)
    odd = {"protokube.service": [sys.executable, "-c", ANOTHER_TIME]}
    with written_through(cluster):
        end = lasting()
        first = replaced(cluster, member, units=odd, environment={**right["environment"], "CLOCK": "0"})
        recovers(cluster)
        for hours in (1, -1):
            turn_clock(cluster, first, hours)
            serves_on(cluster, first)

        name = f"etcd-{member}.internal.{cluster.name}"
        second = replaced(cluster, member, units=odd, environment={**right["environment"], "CLOCK": str(HOUR)})
        until(lambda: disagrees(waits(cluster, "names", name)), "the newcomer says what it waits for")
        wait_for(end)
        turn_clock(cluster, second, 0)
        recovers(cluster)
    cluster.set_group(group, 1, units=right["units"], environment=right["environment"])


def disagrees(said: Sequence[str]) -> bool:
    """Nothing else is said; a name server that stood still for a moment is soon no reason any more."""
    return bool(said) and all("do not agree on the time" in each for each in said)


def replaced(cluster: RealCluster, member: str, **template: Any) -> str:
    """Kill the host of a member; its successor is made of something else."""
    old = cluster.host_of(member)
    cluster.set_group(f"master-{member}", 1, **template)
    cluster.admin.call("kill_host", host=old)
    return until(lambda: successor(cluster, member, old), "a successor")


def turn_clock(cluster: RealCluster, host: str, hours: float) -> None:
    clock = cluster.paths.host(host) / "run/protokube/clock"
    clock.with_name("clock.new").write_text(str(hours * HOUR))  # as a whole: its agent looks at it all the time
    clock.with_name("clock.new").rename(clock)
    until(lambda: abs(off_by(cluster, host) - hours * HOUR) < 60, f"a round {hours} hours off")


def off_by(cluster: RealCluster, host: str) -> float:
    """What its agent took for the time of its last round, compared with when that was written down."""
    written = (cluster.paths.host(host) / "run/protokube/status.json").stat().st_mtime
    return float(cluster.agents()[host]["at"]) - written


def serves_on(cluster: RealCluster, host: str) -> None:
    told = cluster.agents()[host]
    assert told["members"][0]["linked"]
    assert told["report"]["broken"] == []
    until(lambda: all(host in (each["live"] or {}) for each in cluster.agents().values()), "its lease goes on")
    until(lambda: len(cluster.healthy()) == 3, "all members serve")


def test_a_clock_that_is_an_hour_off_stops_nobody_who_serves_and_is_said_by_who_cannot_begin(
    suffered: dict[Fault, BaseException | None],
) -> None:
    survived(suffered, wrong_clock)


FAULTS: Sequence[Sequence[Fault]] = ((silent_provider, silent_name_server), (full_disk, wrong_clock))
"""For each cluster, one after the other."""
