"""While the objects are still listed, the zones are read already: once, and nothing is written."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from builders.dns_objects import a_service
from clusters.dns_world import PUBLIC, Cluster, Leads
from fakes.watch_server import until
from protokube.controllers.dns.controller import Controller, Round
from protokube.controllers.dns.read.watching import Seen
from protokube.controllers.dns.write.zones import Zones
from protokube.controllers.dns.write.zonework import Policy
from protokube.errors import Refused, TryLater
from protokube.providers.dns import DnsProvider
from protokube.providers.dns.given_zones import GivenZones
from protokube.providers.dns.memory import MemoryDns
from protokube.records.zones import Zone

SERVICE = a_service("web", "LoadBalancer", {"ip": "10.0.0.1"}, external_names="web.example.com")


class Listing(Cluster):
    """Its objects are being listed until `ready`."""

    ready = False

    def look(self) -> Seen:
        seen = super().look()
        return seen if self.ready else replace(seen, ready=False, whole=False, trouble="pods: not listed yet")


class Closed(GivenZones):
    """Zones that cannot be opened so many times."""

    faults: list[Exception]

    def open(self, zone: Zone) -> DnsProvider:
        if self.faults:
            raise self.faults.pop(0)
        return super().open(zone)


@contextmanager
def running(cluster: Cluster, zones: GivenZones) -> Iterator[tuple[Controller, list[Round]]]:
    rounds: list[Round] = []
    controller = Controller(
        watching=cluster, election=Leads(), zones=Zones(zones, ()), policy=Policy(owner="a"),
        objects=lambda: cluster, tells=[rounds.append], clock=lambda: cluster.now,
    )  # fmt: skip
    stop = threading.Event()
    thread = threading.Thread(target=controller.run, args=(stop,))
    thread.start()
    try:
        yield controller, rounds
    finally:
        stop.set()
        controller.wake()
        thread.join()


def again(controller: Controller, rounds: list[Round]) -> Round:
    """The next round but one: the one before has ended then."""
    for _ in range(2):
        count = len(rounds)
        controller.wake()
        until(lambda count=count: len(rounds) > count, "another round")  # type: ignore[misc]
    return rounds[-1]


def test_a_zone_is_read_once_and_the_first_full_round_only_writes() -> None:
    cluster, dns = Listing("a"), MemoryDns("example.com")
    cluster.put(SERVICE)
    with running(cluster, GivenZones({PUBLIC: dns})) as (controller, rounds):
        until(lambda: dns.lists, "it is read")
        assert again(controller, rounds).waits == "pods: not listed yet"
        assert (dns.lists, dns.writes) == (1, 0)
        cluster.ready = True
        assert [outcome.trouble for outcome in again(controller, rounds).zones] == [""]
        assert (dns.lists, dns.writes) == (1, 1)


@pytest.mark.parametrize("fault", [TryLater("the account is throttled"), Refused("no permission")])
def test_what_fails_ahead_is_tried_again_by_the_round_that_needs_it(fault: Exception) -> None:
    cluster, dns = Listing("a"), MemoryDns("example.com")
    cluster.put(SERVICE)
    zones = Closed({PUBLIC: dns})
    zones.faults = [fault]
    with running(cluster, zones) as (controller, rounds):
        until(lambda: not zones.faults, "it is tried")
        cluster.ready = True
        assert [outcome.trouble for outcome in again(controller, rounds).zones] == [""]
        assert dns.writes == 1
