"""A zone as a value."""

from __future__ import annotations

import dns.name
import pytest
from dns.rdatatype import RdataType

from fakes.name_servers import ZONE, Kept
from protokube.local.dns.zone import NEGATIVE_TTL, Zone, load_zones
from protokube.records import Record

ORIGIN = dns.name.from_text(ZONE)


def a_record(name: str, kind: str = "A", *values: str, ttl: int = 5) -> Record:
    return Record(name=f"{name}.{ZONE}" if name else ZONE, type=kind, values=values or ("10.0.0.1",), ttl=ttl)


def a_zone(*records: Record) -> Zone:
    zones, _ = load_zones([ZONE], records, None)
    return zones[ORIGIN]


def at(name: str) -> dns.name.Name:
    return dns.name.from_text(name, ORIGIN) if name else ORIGIN


def test_a_new_zone_has_a_soa_and_an_ns_that_points_here() -> None:
    zones, made = load_zones([ZONE], [], "10.77.0.1")

    assert [(change.before, change.after and change.after.key) for change in made] == [
        (None, (ZONE, "NS")),
        (None, (ZONE, "SOA")),
        (None, (f"ns.{ZONE}", "A")),
    ]
    assert zones[ORIGIN].soa.serial == 1
    assert zones[ORIGIN].soa.minimum == NEGATIVE_TTL


def test_what_was_kept_is_loaded_again_and_nothing_has_to_be_made() -> None:
    kept = Kept()
    _, made = load_zones([ZONE], [], "10.77.0.1")
    kept.save(made)
    kept.records[ZONE, "A"] = a_record("", "A", "10.0.0.3", "10.0.0.4", ttl=7)

    zones, made_again = load_zones([ZONE], kept.load(), "10.77.0.1")

    assert made_again == ()
    values = zones[ORIGIN].nodes[ORIGIN][RdataType.A]
    assert (values.ttl, sorted(rdata.to_text() for rdata in values.rdatas)) == (7, ["10.0.0.3", "10.0.0.4"])


@pytest.mark.parametrize("address", ["10.77.0.2", "2001:db8::1"])
def test_a_server_that_moved_points_its_zone_at_the_new_address(address: str) -> None:
    kept = Kept()
    kept.save(load_zones([ZONE], [], "10.77.0.1")[1])

    _, made = load_zones([ZONE], kept.load(), address)

    assert [change.after.values for change in made if change.after] == [(address,)]


def test_each_record_belongs_to_the_closest_zone() -> None:
    records = [a_record("a"), a_record("a.internal"), Record(name="x.other", type="A", values=("10.0.0.1",), ttl=5)]

    zones, _ = load_zones([ZONE, f"internal.{ZONE}"], records, None)

    assert at("a") in zones[ORIGIN].nodes
    assert at("a.internal") not in zones[ORIGIN].nodes
    assert at("a.internal") in zones[at("internal")].nodes


def test_a_name_is_found_in_any_case() -> None:
    assert a_zone(a_record("a")).find(dns.name.from_text(f"A.{ZONE.upper()}")) == a_zone(a_record("a")).nodes[at("a")]


def test_a_name_between_two_others_is_there_without_records() -> None:
    zone = a_zone(a_record("a.b.c"))

    assert zone.find(at("b.c")) == {}
    assert zone.find(at("c")) == {}
    assert zone.find(at("x.c")) is None
    assert zone.find(at("d")) is None


def test_a_wildcard_answers_for_names_that_are_not_there_and_for_no_others() -> None:
    zone = a_zone(a_record("*", "A", "10.0.0.9"), a_record("a", "TXT", '"x"'), a_record("deep.b"))
    covered = zone.nodes[at("*")]

    assert zone.find(at("anything")) == covered
    assert zone.find(at("any.thing")) == covered
    assert zone.find(at("*")) == covered
    assert RdataType.A not in (zone.find(at("a")) or {})
    assert zone.find(at("b")) == {}
    assert zone.find(at("other.b")) is None, "the closest name around it is b, which has no wildcard"
    assert zone.find(at("x.a")) is None


def test_the_serial_can_be_set_without_touching_anything_else() -> None:
    zone = a_zone(a_record("a"))

    after = zone.with_serial(7)

    assert (zone.soa.serial, after.soa.serial) == (1, 7)
    assert [change.key for change in zone.changes_to(after)] == [(ZONE, "SOA")]


def test_the_difference_of_two_zones_is_sorted_and_complete() -> None:
    before = a_zone(a_record("a"), a_record("b"), a_record("c", "TXT", '"x"'))
    after = a_zone(a_record("a"), a_record("b", ttl=9), a_record("d"))

    changes = before.changes_to(after)

    assert [(change.before, change.after) for change in changes] == [
        (a_record("b"), a_record("b", ttl=9)),
        (a_record("c", "TXT", '"x"'), None),
        (None, a_record("d")),
    ]
    assert before.changes_to(before) == ()


def test_a_text_is_kept_in_the_form_of_a_zone_file_whatever_is_in_it() -> None:
    strange = a_record("a", "TXT", '"say \\"x\\"" "\\255\\000"')

    assert list(a_zone(strange).records([at("a")])) == [strange]
