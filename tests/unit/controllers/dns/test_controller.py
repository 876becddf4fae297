"""The round: when it waits, when it runs again, and what it does when zones or lists change."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from builders.dns_objects import a_pod, a_service
from clusters.dns_world import GRACE, PRIVATE, PUBLIC, Cluster, Leads, World
from fakes.watch_server import until
from protokube.controllers.dns.controller import SOON, Controller, Round
from protokube.controllers.dns.read.agentnames import Names
from protokube.controllers.dns.read.watching import Seen
from protokube.controllers.dns.write.zones import RECORDS_EVERY, ZONES_EVERY, Zones
from protokube.controllers.dns.write.zonework import Policy
from protokube.errors import Refused, TryLater
from protokube.providers.dns import DnsProvider
from protokube.providers.dns.given_zones import GivenZones, given
from protokube.providers.dns.memory import MemoryDns
from protokube.records.zones import Zone

SERVICE = a_service("web", "LoadBalancer", {"ip": "10.0.0.1"}, external_names="web.example.com")


def one(world: World) -> Controller:
    return world.replicas["a"][0].controller


@pytest.fixture
def world() -> World:
    found = World(("a",))
    found.clusters["a"].put(SERVICE)
    return found


class NotListed(Cluster):
    """Nothing is listed yet."""

    def look(self) -> Seen:
        return replace(super().look(), ready=False, whole=False, trouble="pods: not listed yet")


class Moving(GivenZones):
    """An account whose zones come and go."""

    fault = ""
    gone: frozenset[Zone] = frozenset()

    def list_zones(self) -> list[Zone]:
        if self.fault:
            raise TryLater(self.fault)
        return [zone for zone in super().list_zones() if zone not in self.gone]


def a_controller(cluster: Cluster, zones: GivenZones, *tells: Callable[[Round], None]) -> Controller:
    return Controller(
        watching=cluster,
        election=Leads(),
        zones=Zones(zones, ()),
        policy=Policy(owner="a"),
        objects=lambda: cluster,
        tells=tells,
        clock=lambda: cluster.now,
    )


def test_nothing_is_done_before_everything_was_listed() -> None:
    cluster, dns = NotListed("a"), MemoryDns("example.com")
    done = a_controller(cluster, given(dns)).round()
    assert (done.waits, dns.lists, dns.writes) == ("pods: not listed yet", 0, 0)


def test_who_does_not_lead_does_nothing_and_says_who_does(world: World) -> None:
    world.lead("a", False, False)
    done = one(world).round()
    assert (done.waits, done.look_again_at) == ("another leads", SOON)
    assert world.dns[PUBLIC].lists == 0


def test_who_leads_again_reads_the_zones_again(world: World) -> None:
    one(world).round()
    world.lead("a", False, True)
    one(world).round()
    world.clusters["a"].put(a_service("web", "LoadBalancer", {"ip": "10.0.0.2"}, external_names="web.example.com"))
    world.replicas["a"][1].controller.round()
    world.lead("a", True, False)
    lists = world.dns[PUBLIC].lists
    assert not any(outcome.applied for outcome in one(world).round().zones)
    assert world.dns[PUBLIC].lists == lists + 1


def test_zones_that_cannot_be_listed_are_waited_for() -> None:
    cluster, dns = Cluster("a"), MemoryDns("example.com")
    zones = Moving({PUBLIC: dns})
    zones.fault = "throttled"
    controller = a_controller(cluster, zones)
    done = controller.round()
    assert done.waits == "the zones cannot be listed: throttled"
    assert done.look_again_at == 10 * SOON
    zones.fault = ""
    assert [outcome.zone for outcome in controller.round().zones] == [PUBLIC]


def test_a_zone_that_vanishes_is_left_as_it_is_and_one_that_comes_back_is_looked_after() -> None:
    cluster = Cluster("a")
    cluster.put(SERVICE)
    public, private = MemoryDns("example.com"), MemoryDns("example.com")
    zones = Moving({PUBLIC: public, PRIVATE: private})
    controller = a_controller(cluster, zones)
    controller.round()
    zones.gone, cluster.now = frozenset({PUBLIC}), ZONES_EVERY
    cluster.remove("service/default/web")
    assert [outcome.zone for outcome in controller.round().zones] == [PRIVATE]
    for cluster.now in (ZONES_EVERY + GRACE, 2 * ZONES_EVERY - 1):
        controller.round()
    assert (len(public.list_records()), len(private.list_records())) == (2, 0)
    zones.gone, cluster.now = frozenset(), 2 * ZONES_EVERY
    controller.round()
    cluster.now += GRACE
    controller.round()
    assert public.list_records() == ()


def test_a_round_comes_again_when_the_first_thing_is_due(world: World) -> None:
    assert one(world).round().look_again_at == RECORDS_EVERY
    world.clusters["a"].agents = Names(reserved=frozenset(), ends_at=17.0)
    assert one(world).round().look_again_at == 17.0
    world.clusters["a"].agents = Names()
    world.clusters["a"].remove("service/default/web")
    assert one(world).round().look_again_at == GRACE


def test_a_list_that_lacks_an_object_is_read_again_once_and_is_well_then(world: World) -> None:
    cluster = world.clusters["a"]
    one(world).round()
    cluster.hide(["service/default/web"])
    one(world).round()
    assert cluster.relists == 0, "a list that lacks something is nothing odd by itself"
    world.pass_time(GRACE)
    one(world).round()
    assert (cluster.relists, cluster.honest) == (1, True)
    world.pass_time(GRACE)
    one(world).round()
    assert cluster.relists == 1


def test_what_is_wrong_with_objects_is_told(world: World) -> None:
    world.clusters["a"].put(a_pod("odd", internal_names="odd.elsewhere.org"))
    assert [(each.source, each.name) for each in one(world).round().problems] == [
        ("pod/default/odd", "odd.elsewhere.org")
    ]


class Closed(GivenZones):
    """An account with zones that cannot be opened."""

    def open(self, zone: Zone) -> DnsProvider:
        if zone.private:
            raise Refused(f"{zone} cannot be opened, says the test")
        return super().open(zone)


def test_a_zone_that_cannot_be_opened_is_told_and_stops_no_other_one() -> None:
    cluster, public = Cluster("a"), MemoryDns("example.com")
    cluster.put(SERVICE)
    done = a_controller(cluster, Closed({PUBLIC: public, PRIVATE: MemoryDns("example.com")})).round()
    troubles = {outcome.zone: outcome.trouble for outcome in done.zones}
    assert "says the test" in troubles.pop(PRIVATE)
    assert troubles == {PUBLIC: ""}
    assert public.list_records()
    assert done.look_again_at == 10 * SOON


def test_why_a_round_came_to_nothing_is_logged_once_for_each_reason(caplog: pytest.LogCaptureFixture) -> None:
    cluster, rounds = Cluster("a"), list[Round]()

    def odd(done: Round) -> None:
        rounds.append(done)
        raise TryLater("who is told has trouble" if len(rounds) < 4 else "who is told has another trouble")

    controller, stop = a_controller(cluster, given(MemoryDns("example.com")), odd), threading.Event()
    thread = threading.Thread(target=controller.run, args=(stop,))
    thread.start()
    try:
        for count in range(1, 6):
            until(lambda count=count: len(rounds) >= count, "it goes on")  # type: ignore[misc]
            controller.wake()
    finally:
        stop.set()
        controller.wake()
        thread.join(20)
    messages = [
        each.getMessage().rpartition(": ")[2] for each in caplog.records if "a round failed" in each.getMessage()
    ]
    assert messages == ["who is told has trouble", "who is told has another trouble"]


def test_it_runs_when_it_is_woken_and_goes_on_after_a_bug() -> None:
    """The thread: one round for each wake, until it is stopped."""
    cluster, rounds = Cluster("a"), list[Round]()

    def odd(done: Round) -> None:
        rounds.append(done)
        if len(rounds) == 1:
            raise TryLater("who is told has trouble")

    dns = MemoryDns("example.com")
    controller, stop = a_controller(cluster, given(dns), odd), threading.Event()
    thread = threading.Thread(target=controller.run, args=(stop,))
    thread.start()
    try:
        until(lambda: len(rounds) >= 2, "it goes on")
        cluster.put(SERVICE)
        controller.wake()
        until(dns.list_records, "what came stands")
    finally:
        stop.set()
        controller.wake()
        thread.join(20)
    assert not thread.is_alive()
