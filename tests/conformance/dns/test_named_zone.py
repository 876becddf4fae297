"""A zone of an account, found by its name: by agents, which must write to exactly one."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes.name_servers import create
from fakes.route53 import Route53Server
from protokube.errors import Refused
from protokube.providers import catalog
from protokube.providers.dns import DnsProvider
from protokube.records.names import make_record
from protokube.store.memory import MemoryStore


def as_an_agent(server: Route53Server, zone: str, **settings: object) -> DnsProvider:
    told = {"kind": "route53", "zone": zone, "endpoint": server.url, **settings}
    found = catalog.names(told, Path("/"), MemoryStore("memory://names"), "dev")
    assert found.zone
    assert found.provider is not None
    return found.provider


def test_an_agent_writes_its_zone_and_asks_nobody_before_that(route53: Route53Server) -> None:
    own, record = route53.zone("own.example", private=True), make_record("a.own.example", "A", ["10.0.0.1"], 5)
    before = dict(route53.requests)
    provider = as_an_agent(route53, "own.example")
    assert (provider.zone, dict(route53.requests)) == ("own.example", before)

    provider.apply(create(record))

    assert record in route53.account.open(own).list_records()


def test_of_two_zones_of_one_name_none_is_guessed(route53: Route53Server) -> None:
    public, private = (route53.zone("two.example", private=each) for each in (False, True))
    record = make_record("a.two.example", "A", ["10.0.0.1"], 5)

    with pytest.raises(Refused, match="there are several zones") as why:
        as_an_agent(route53, "two.example").list_records()

    assert public.id in why.value.saw
    assert private.id in why.value.saw
    as_an_agent(route53, "two.example", private=True).apply(create(record))
    as_an_agent(route53, "two.example", id=public.id).list_records()
    assert record in route53.account.open(private).list_records()
    assert record not in route53.account.open(public).list_records()


def test_a_zone_that_is_not_there_is_named_with_those_that_are(route53: Route53Server) -> None:
    own = route53.zone("there.example")

    for wrong in (as_an_agent(route53, "elsewhere.example"), as_an_agent(route53, "there.example", id="ZNOWHERE")):
        with pytest.raises(Refused, match="there is no such zone") as why:
            wrong.read(["a.there.example"])
        assert str(own) in why.value.saw


def test_a_zone_that_was_created_again_is_found_again(route53: Route53Server) -> None:
    provider = as_an_agent(route53, "again.example")
    gone = route53.zone("again.example")
    provider.list_records()
    route53.backend.delete_hosted_zone(gone.id)
    route53.zone("again.example")

    with pytest.raises(Refused):
        provider.list_records()

    provider.list_records()
