"""Read-only handles and given zones over every provider."""

from __future__ import annotations

import pytest

from conformance.dns.conftest import Zone
from fakes.name_servers import a_text, an_address, change, create, delete
from protokube.errors import Refused
from protokube.providers.dns import BadRecord, DnsProvider
from protokube.providers.dns.budget import Budget, BudgetedDns
from protokube.providers.dns.given_zones import given
from protokube.providers.dns.readonly import DryRun, ReadOnlyDns

A, B = an_address("a"), an_address("b")


def test_under_a_read_only_handle_no_write_reaches_the_far_side(zone: Zone) -> None:
    assert zone.writes is not None
    zone.provider.apply(create(A))
    before = zone.writes()
    handle = ReadOnlyDns(zone.connect())
    assert list(handle.read([A.name])) == [A]
    assert A in handle.list_records()

    for batch in ([change(A, an_address("a", "10.0.0.9"))], delete(A), create(B, a_text("b"))):
        for part in handle.split([batch]):
            with pytest.raises(DryRun):
                handle.apply(part)

    assert zone.writes() == before
    assert zone.records() == [A]
    assert list(handle.held_back) == [*delete(A), *create(B, a_text("b"))]
    zone.provider.apply(delete(A))
    assert zone.writes() != before


def test_a_dry_run_says_so_and_turns_away_what_could_not_be(zone: Zone) -> None:
    handle: DnsProvider = ReadOnlyDns(zone.provider)

    handle.apply([])
    with pytest.raises(BadRecord):
        handle.apply([*create(A), *delete(A)])
    with pytest.raises(Refused) as caught:
        handle.apply(create(A, B))

    assert "2 changes" in str(caught.value)
    assert handle.zone in str(caught.value)


def test_a_given_zone_is_the_only_one_and_can_be_opened(zone: Zone) -> None:
    zones = given(zone.provider)
    (only,) = zones.list_zones()

    zones.open(only).apply(create(A))

    assert only.name == only.id == zone.provider.zone
    assert zone.records() == [A]


def test_a_budgeted_zone_is_the_zone_and_counts_its_calls(zone: Zone) -> None:
    budget = Budget()
    counted: DnsProvider = BudgetedDns(zone.provider, budget)

    for batch in counted.split([create(A), create(B)]):
        counted.apply(batch)

    assert list(counted.read([A.name])) == [A]
    assert B in counted.list_records()
    assert budget.calls == {"apply": 1, "read": 1, "list": 1}
    assert counted.zone == zone.provider.zone
