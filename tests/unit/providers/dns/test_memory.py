"""What the memory provider has beyond what every provider does."""

from __future__ import annotations

import pytest

from fakes.name_servers import ZONE, an_address, create
from protokube.errors import TryLater
from protokube.providers.dns import DnsProvider, Stale
from protokube.providers.dns.memory import MemoryDns


def test_it_can_be_taken_away_and_come_back() -> None:
    dns = MemoryDns(ZONE)
    dns.unreachable = True
    for call in (lambda: dns.read([ZONE]), dns.list_records, lambda: dns.apply(create(an_address("a")))):
        with pytest.raises(TryLater):
            call()

    dns.unreachable = False

    assert dns.list_records() == ()


def test_it_counts_what_it_is_asked() -> None:
    dns = MemoryDns(ZONE)
    dns.apply(create(an_address("a")))
    dns.read([ZONE])
    dns.read([ZONE])
    dns.list_records()
    with pytest.raises(Stale):
        dns.apply(create(an_address("a")))

    assert (dns.reads, dns.lists, dns.writes) == (2, 1, 1)


def test_it_is_a_provider() -> None:
    provider: DnsProvider = MemoryDns("DEV.example.com.")

    assert provider.zone == ZONE
