"""Aliases (CNAME), wildcards and batches: what every provider does that is DNS and not a file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.dns.conftest import Zone
from fakes.name_servers import ZONE, a_text, an_address, an_alias, change, create, delete
from protokube.providers.dns import BadRecord, Stale
from protokube.records import Change, Record
from protokube.records.member import Refuse, plan_member

ALIAS = an_alias("a")
OUTSIDE = an_alias("a", "elb-1.eu-west-1.elb.example.net")
A, TEXT, MARK = an_address("a"), a_text("a"), a_text("_protokube.a", "protokube/1 x CNAME y z")


def read(zone: Zone, *names: str) -> list[Record]:
    return list(zone.provider.read([f"{name}.{ZONE}" for name in names]))


@pytest.mark.parametrize("target", [ALIAS, OUTSIDE], ids=["to a name that is not there", "out of the zone"])
def test_an_alias_is_made_changed_and_removed(dns_zone: Zone, target: Record) -> None:
    other = an_alias("a", f"other.{ZONE}", ttl=60)
    dns_zone.provider.apply(create(target))
    assert read(dns_zone, "a") == dns_zone.records() == [target]

    dns_zone.provider.apply([change(target, other)])
    assert read(dns_zone, "a") == dns_zone.records() == [other]

    dns_zone.provider.apply(delete(other))
    assert read(dns_zone, "a") == dns_zone.records() == []


def test_an_alias_of_a_name_with_records_is_read_as_an_alias_alone(dns_zone: Zone) -> None:
    there = [an_address("target"), a_text("target"), an_address("target", "2001:db8::1")]
    dns_zone.provider.apply(create(ALIAS, *there))

    assert read(dns_zone, "a") == [ALIAS]
    assert dns_zone.records() == sorted([ALIAS, *there])


def test_an_alias_stands_above_the_record_that_says_whose_it_is(dns_zone: Zone) -> None:
    dns_zone.provider.apply(create(MARK))

    dns_zone.provider.apply([*create(ALIAS), change(MARK, MARK)])
    assert read(dns_zone, "a", "_protokube.a") == sorted([ALIAS, MARK])

    dns_zone.provider.apply(delete(ALIAS, MARK))
    assert dns_zone.records() == []


@pytest.mark.parametrize(
    "stale",
    [
        create(ALIAS),
        create(OUTSIDE),
        [change(OUTSIDE, an_alias("a", "third.example.net"))],
        delete(OUTSIDE),
        delete(an_alias("z")),
        [change(an_alias("z"), an_alias("z", "third.example.net"))],
        [*delete(OUTSIDE), *create(A)],
    ],
    ids=["made twice", "made anew", "another", "deleted", "no such", "changed though not there", "replaced"],
)
def test_an_alias_that_is_not_what_was_seen_writes_nothing_at_all(dns_zone: Zone, stale: list[Change]) -> None:
    dns_zone.provider.apply(create(ALIAS))

    with pytest.raises(Stale):
        dns_zone.provider.apply([*create(an_address("b")), *stale])

    assert dns_zone.records() == [ALIAS]


def test_addresses_become_an_alias_and_back_in_one_batch_each(dns_zone: Zone) -> None:
    six = an_address("a", "2001:db8::1")
    dns_zone.provider.apply(create(A, six, MARK))

    dns_zone.provider.apply([*create(ALIAS), *delete(six), *delete(A), change(MARK, MARK)])
    assert read(dns_zone, "a") == [ALIAS]

    dns_zone.provider.apply([*create(A, six, TEXT), *delete(ALIAS)])
    assert read(dns_zone, "a") == sorted([A, six, TEXT])


@pytest.mark.parametrize("beside", [A, an_address("a", "2001:db8::1"), TEXT], ids=["A", "AAAA", "TXT"])
def test_nothing_stands_beside_an_alias_and_nothing_else_is_lost(dns_zone: Zone, beside: Record) -> None:
    with pytest.raises(BadRecord):
        dns_zone.provider.apply(create(beside, ALIAS))
    assert dns_zone.records() == []

    dns_zone.provider.apply(create(ALIAS))
    with pytest.raises(BadRecord) as caught:
        dns_zone.provider.apply(create(beside))
    assert "CNAME" in str(caught.value)
    assert dns_zone.records() == [ALIAS]

    dns_zone.provider.apply(delete(ALIAS))
    dns_zone.provider.apply(create(beside, an_address("b")))
    with pytest.raises(BadRecord):
        dns_zone.provider.apply(create(ALIAS))
    assert dns_zone.records() == [beside, an_address("b")]


def test_a_record_that_the_batch_forgot_keeps_its_place(dns_zone: Zone) -> None:
    """A server would delete the address and then drop the alias, because of the text, and report a success."""
    dns_zone.provider.apply(create(A, TEXT))

    with pytest.raises(BadRecord):
        dns_zone.provider.apply([*delete(A), *create(ALIAS)])

    assert dns_zone.records() == [A, TEXT]


@pytest.mark.parametrize(
    "bad",
    [
        replace(ALIAS, values=(f"b.{ZONE}", f"c.{ZONE}")),
        replace(ALIAS, values=(ALIAS.name,)),
        replace(ALIAS, values=("not a name",)),
        replace(ALIAS, values=(f"B.{ZONE}",)),
        replace(ALIAS, name=ZONE),
        replace(ALIAS, ttl=-1),
    ],
    ids=["two", "itself", "no name", "not its one form", "top", "ttl"],
)
def test_an_alias_that_cannot_be_is_turned_away(zone: Zone, bad: Record) -> None:
    with pytest.raises(BadRecord):
        zone.provider.apply(create(an_address("b"), bad))

    assert zone.records() == []


@pytest.mark.parametrize("zone", ["hosts"], indirect=True)
def test_a_hosts_file_says_that_it_has_no_aliases(zone: Zone) -> None:
    with pytest.raises(BadRecord) as caught:
        zone.provider.apply(create(ALIAS))

    assert "hosts file has no aliases" in caught.value.saw


@pytest.mark.parametrize("adopt", [False, True])
def test_a_member_never_takes_the_place_of_an_alias(dns_zone: Zone, adopt: bool) -> None:
    dns_zone.provider.apply(create(ALIAS))

    plan = plan_member(dns_zone.provider.read([ALIAS.name]), ALIAS.name, "10.0.0.1", 1, "i-1", adopt=adopt)

    assert isinstance(plan, Refuse)
    assert "CNAME" in plan.why


@pytest.mark.parametrize(
    "star", [an_address("*.apps"), an_alias("*.apps"), a_text("*.apps")], ids=["A", "CNAME", "TXT"]
)
def test_a_wildcard_is_made_changed_and_removed(dns_zone: Zone, star: Record) -> None:
    other = replace(star, ttl=60)
    dns_zone.provider.apply(create(star))
    assert read(dns_zone, "*.apps", "x.apps") == dns_zone.records() == [star]

    with pytest.raises(Stale):
        dns_zone.provider.apply(create(star))
    dns_zone.provider.apply([change(star, other)])
    assert read(dns_zone, "*.apps") == [other]

    dns_zone.provider.apply(create(an_address("x.apps")))
    assert read(dns_zone, "*.apps", "x.apps") == [other, an_address("x.apps")]

    dns_zone.provider.apply(delete(other))
    assert dns_zone.records() == [an_address("x.apps")]


def units(count: int, text: str) -> list[list[Change]]:
    return [create(an_address(f"n{number:04}"), a_text(f"_protokube.n{number:04}", text)) for number in range(count)]


def test_what_was_split_is_taken_batch_by_batch_and_no_unit_is_torn(zone: Zone) -> None:
    asked = units(60, "x" * 900)

    batches = zone.provider.split(asked)
    for batch in batches:
        zone.provider.apply(batch)

    assert [change for batch in batches for change in batch] == [change for unit in asked for change in unit]
    assert all(len(batch) % 2 == 0 for batch in batches)
    assert len(zone.records()) == 120


def test_splitting_nothing_gives_no_batch_at_all(zone: Zone) -> None:
    assert list(zone.provider.split([])) == list(zone.provider.split([[]])) == []
