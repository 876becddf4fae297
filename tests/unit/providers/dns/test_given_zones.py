"""A fixed set of zones."""

from __future__ import annotations

import pytest

from protokube.errors import Refused
from protokube.providers.dns import ZoneProvider
from protokube.providers.dns.given_zones import GivenZones, given
from protokube.providers.dns.memory import MemoryDns
from protokube.records.zones import Zone


def test_several_zones_are_listed_in_order_and_each_opens_as_itself() -> None:
    b, a = MemoryDns("b.test"), MemoryDns("a.test")
    zones: ZoneProvider = given(b, a)

    assert [zone.name for zone in zones.list_zones()] == ["a.test", "b.test"]
    assert [zones.open(zone) for zone in zones.list_zones()] == [a, b]


def test_two_zones_of_one_name_are_told_apart_by_their_ids() -> None:
    inside, outside = MemoryDns("a.test"), MemoryDns("a.test")
    zones = GivenZones(
        {Zone(name="a.test", id="in", private=True): inside, Zone(name="a.test", id="out"): outside},
    )

    assert [zones.open(zone) for zone in zones.list_zones()] == [inside, outside]


def test_a_zone_that_was_not_given_is_refused() -> None:
    with pytest.raises(Refused) as caught:
        given(MemoryDns("a.test")).open(Zone(name="b.test", id="b.test"))

    assert "a.test" in caught.value.saw
