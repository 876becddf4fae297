"""The cache of zones between two lists, and the effect of a list that fails."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from clusters.dns_world import PRIVATE, PUBLIC
from protokube.controllers.dns.decide.zonerules import Rule
from protokube.controllers.dns.write.zones import MISSED, RECORDS_EVERY, ZONES_EVERY, Zones, ZoneView
from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.providers.dns import DnsProvider
from protokube.providers.dns.memory import MemoryDns
from protokube.records import Change, Record
from protokube.records.zones import Zone

WEB = Record(name="web.example.com", type="A", values=("10.0.0.1",), ttl=60)


class Account:
    """Implements ZoneProvider; its list fails on demand."""

    def __init__(self, *zones: Zone) -> None:
        self.zones, self.lists = list(zones), 0
        self.fault: ProtokubeError | None = None

    def list_zones(self) -> Sequence[Zone]:
        self.lists += 1
        if self.fault:
            raise self.fault
        return self.zones

    def open(self, zone: Zone) -> DnsProvider:
        return MemoryDns(zone.name)


def test_a_zone_is_listed_once_and_again_when_it_is_time() -> None:
    dns = MemoryDns("example.com")
    view = ZoneView(dns)
    for now in (0.0, 1.0, RECORDS_EVERY - 1):
        assert view.current(now) == ()
    assert dns.lists == 1
    dns.apply([Change(before=None, after=WEB, why="somebody else")])
    assert view.current(RECORDS_EVERY) == (WEB,)
    assert dns.lists == 2


def test_what_we_wrote_is_known_without_a_list() -> None:
    dns = MemoryDns("example.com")
    view = ZoneView(dns)
    view.current(0)
    view.applied([Change(before=None, after=WEB, why="")])
    assert view.current(1) == (WEB,)
    view.applied([Change(before=WEB, after=None, why="")])
    assert view.current(2) == ()
    assert dns.lists == 1


def test_a_view_that_was_forgotten_is_listed_at_once() -> None:
    dns = MemoryDns("example.com")
    view = ZoneView(dns)
    view.current(0)
    view.forget()
    assert view.due_at == float("-inf")
    view.current(1)
    assert dns.lists == 2


def test_a_list_that_fails_leaves_what_is_known_to_be_read_again() -> None:
    dns = MemoryDns("example.com")
    view = ZoneView(dns)
    dns.unreachable = True
    with pytest.raises(TryLater):
        view.current(0)
    dns.unreachable = False
    assert view.current(0) == ()


def test_zones_are_listed_now_and_then() -> None:
    account = Account(PUBLIC)
    zones = Zones(account, ())
    assert zones.managed(0).zones == (PUBLIC,)
    account.zones.append(PRIVATE)
    assert zones.managed(ZONES_EVERY - 1).zones == (PUBLIC,)
    assert zones.managed(ZONES_EVERY).zones == (PUBLIC, PRIVATE)
    assert account.lists == 2


def test_a_name_without_a_zone_has_them_listed_sooner_and_not_in_every_round() -> None:
    account = Account(PUBLIC)
    zones = Zones(account, ())
    zones.managed(0)
    account.zones.append(PRIVATE)
    for now in (1.0, 2.0, MISSED - 1):
        assert zones.miss() == MISSED
        assert zones.managed(now).zones == (PUBLIC,)
    assert zones.managed(MISSED).zones == (PUBLIC, PRIVATE)
    assert zones.miss() == 2 * MISSED
    assert account.lists == 2


@pytest.mark.parametrize("fault", [TryLater("throttled"), Refused("not any more")])
def test_known_zones_stay_when_a_list_fails(fault: ProtokubeError) -> None:
    account = Account(PUBLIC)
    zones = Zones(account, ())
    zones.managed(0)
    account.fault = fault
    assert zones.managed(ZONES_EVERY).zones == (PUBLIC,)
    assert zones.managed(ZONES_EVERY + 1).zones == (PUBLIC,)
    assert account.lists == 2, "it is not asked in every round"


@pytest.mark.parametrize("fault", [TryLater("throttled"), Refused("no")])
def test_without_a_first_list_there_are_no_zones(fault: ProtokubeError) -> None:
    account = Account(PUBLIC)
    account.fault = fault
    zones = Zones(account, ())
    with pytest.raises(type(fault)):
        zones.managed(0)
    account.fault = None
    assert zones.managed(0).zones == (PUBLIC,)


def test_only_zones_that_a_rule_covers_are_ours() -> None:
    managed = Zones(Account(PUBLIC, PRIVATE), (Rule(id="Z2"),)).managed(0)
    assert managed.zones == (PRIVATE,)
    assert [zone for zone, _ in managed.left] == [PUBLIC]
