"""Dynamic updates, clause by clause of RFC 2136."""

from __future__ import annotations

from collections.abc import Callable

import dns.message
import dns.name
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import dns.update
import pytest
from dns.rdatatype import RdataType
from dns.update import UpdateMessage

from fakes.name_servers import ZONE
from protokube.local.dns.update import UpdateRefused, carry_out
from protokube.local.dns.zone import Zone, load_zones
from protokube.records import Record

ORIGIN = dns.name.from_text(ZONE)
A = f"a.{ZONE}."
Edit = Callable[[UpdateMessage], None]


def a_zone(serial: int = 1) -> Zone:
    """`a` has two addresses and a text."""
    records = [
        Record(name=f"a.{ZONE}", type="A", values=("10.0.0.1", "10.0.0.2"), ttl=5),
        Record(name=f"a.{ZONE}", type="TXT", values=('"x"',), ttl=5),
        Record(name=f"deep.b.{ZONE}", type="A", values=("10.0.0.3",), ttl=5),
    ]
    zones, _ = load_zones([ZONE], records, None)
    return zones[ORIGIN].with_serial(serial)


def sent(edit: Edit) -> UpdateMessage:
    """The update as a server reads it."""
    message = UpdateMessage(ORIGIN)
    edit(message)
    received = dns.message.from_wire(message.to_wire(), one_rr_per_rrset=True)
    assert isinstance(received, UpdateMessage)
    return received


def updated(edit: Edit, zone: Zone | None = None) -> Zone:
    return carry_out(zone or a_zone(), sent(edit))


def refused(edit: Edit) -> str:
    with pytest.raises(UpdateRefused) as caught:
        updated(edit)
    return caught.value.code.name


def values(zone: Zone, name: str = "a", kind: str = "A") -> tuple[int, list[str]]:
    found = zone.nodes[dns.name.from_text(name, ORIGIN) if name else ORIGIN][RdataType[kind]]
    return found.ttl, sorted(rdata.to_text() for rdata in found.rdatas)


def keys(zone: Zone) -> list[str]:
    return sorted(f"{name.relativize(ORIGIN)} {kind.name}" for name, node in zone.nodes.items() for kind in node)


ALL = ["@ NS", "@ SOA", "a A", "a TXT", "deep.b A"]


@pytest.mark.parametrize(
    ("code", "edit"),
    [
        ("", lambda u: u.present(A)),
        ("", lambda u: u.present(A.upper())),
        ("NXDOMAIN", lambda u: u.present(f"z.{ZONE}.")),
        ("NXDOMAIN", lambda u: u.present(f"b.{ZONE}.")),
        ("", lambda u: u.present(A, "TXT")),
        ("NXRRSET", lambda u: u.present(A, "AAAA")),
        ("NXRRSET", lambda u: u.present(f"z.{ZONE}.", "A")),
        ("", lambda u: u.present(A, "A", "10.0.0.2", "10.0.0.1")),
        ("NXRRSET", lambda u: u.present(A, "A", "10.0.0.1")),
        ("NXRRSET", lambda u: u.present(A, "A", "10.0.0.1", "10.0.0.2", "10.0.0.3")),
        ("NXRRSET", lambda u: u.present(A, "AAAA", "2001:db8::1")),
        ("", lambda u: u.absent(f"z.{ZONE}.")),
        ("", lambda u: u.absent(f"b.{ZONE}.")),
        ("YXDOMAIN", lambda u: u.absent(A)),
        ("", lambda u: u.absent(A, "AAAA")),
        ("YXRRSET", lambda u: u.absent(A, "A")),
        ("NOTZONE", lambda u: u.absent("a.other.com.")),
        ("NOTZONE", lambda u: u.present("a.other.com.")),
        ("NOTZONE", lambda u: u.present("com.")),
        ("FORMERR", lambda u: u._add(False, u.prerequisite, A, 5, "A", "10.0.0.1")),
    ],
)
def test_every_kind_of_prerequisite(code: str, edit: Edit) -> None:
    zone = a_zone()

    def with_a_change(update: UpdateMessage) -> None:
        edit(update)
        update.add(f"new.{ZONE}.", 5, "A", "10.0.0.9")

    if code:
        assert refused(with_a_change) == code
    else:
        assert "new A" in keys(updated(with_a_change))
        assert updated(edit, zone) is zone, "prerequisites alone change nothing"


def test_one_prerequisite_that_fails_is_enough() -> None:
    def edit(update: UpdateMessage) -> None:
        update.present(A, "A")
        update.present(A, "AAAA")
        update.delete(A)

    assert refused(edit) == "NXRRSET"


def test_a_value_is_added_and_the_serial_rises() -> None:
    after = updated(lambda u: u.add(A, 5, "A", "10.0.0.3"))

    assert values(after) == (5, ["10.0.0.1", "10.0.0.2", "10.0.0.3"])
    assert after.soa.serial == 2


def test_all_values_of_a_record_share_the_last_ttl_told() -> None:
    assert values(updated(lambda u: u.add(A, 60, "A", "10.0.0.3"))) == (60, ["10.0.0.1", "10.0.0.2", "10.0.0.3"])
    assert values(updated(lambda u: u.add(A, 60, "A", "10.0.0.1"))) == (60, ["10.0.0.1", "10.0.0.2"])


def test_adding_what_is_there_changes_nothing_not_even_the_serial() -> None:
    zone = a_zone()

    assert updated(lambda u: u.add(A, 5, "A", "10.0.0.1"), zone) is zone


@pytest.mark.parametrize(
    ("kind", "value"),
    [("AAAA", "2001:db8::1"), ("TXT", '"x" "y"'), ("SRV", f"0 0 2380 a.{ZONE}."), ("CNAME", "x.test.")],
)
def test_every_type_we_serve_can_be_added(kind: str, value: str) -> None:
    assert values(updated(lambda u: u.add(f"new.{ZONE}.", 9, kind, value)), "new", kind) == (9, [value])


def test_an_alias_is_passed_over_beside_records_and_records_beside_an_alias() -> None:
    assert keys(updated(lambda u: u.add(A, 9, "CNAME", "x.test."))) == ALL

    aliased = updated(lambda u: u.add(f"new.{ZONE}.", 9, "CNAME", "x.test."))
    assert updated(lambda u: u.add(f"new.{ZONE}.", 9, "A", "10.0.0.1"), aliased) is aliased


def test_an_alias_takes_the_place_of_another() -> None:
    aliased = updated(lambda u: u.add(f"new.{ZONE}.", 9, "CNAME", "x.test."))

    assert values(updated(lambda u: u.add(f"new.{ZONE}.", 7, "CNAME", "y.test."), aliased), "new", "CNAME") == (
        7,
        ["y.test."],
    )


def test_an_alias_can_come_where_all_else_was_deleted_before() -> None:
    def edit(update: UpdateMessage) -> None:
        update.delete(A, "A")
        update.delete(A, "TXT")
        update.add(A, 9, "CNAME", "x.test.")

    assert keys(updated(edit)) == ["@ NS", "@ SOA", "a CNAME", "deep.b A"]


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        (A, "MX", f"10 b.{ZONE}."),
        (A, "NS", f"b.{ZONE}."),
        (A, "SOA", f"a.{ZONE}. b.{ZONE}. 9 1 1 1 1"),
        (A, "TYPE65280", r"\# 1 00"),
    ],
)
def test_what_we_do_not_serve_is_refused_with_the_whole_update(name: str, kind: str, value: str) -> None:
    def edit(update: UpdateMessage) -> None:
        update.add(A, 5, "A", "10.0.0.9")
        update.add(name, 5, kind, value)

    assert refused(edit) == "REFUSED"


def test_a_name_outside_the_zone_is_not_ours() -> None:
    for name in ("a.other.com.", "example.com.", f"x{ZONE}."):
        assert refused(lambda u, name=name: u.add(name, 5, "A", "10.0.0.9")) == "NOTZONE"  # type: ignore[misc]
        assert refused(lambda u, name=name: u.delete(name)) == "NOTZONE"  # type: ignore[misc]


def test_a_record_is_deleted_whole() -> None:
    after = updated(lambda u: u.delete(A, "A"))

    assert keys(after) == ["@ NS", "@ SOA", "a TXT", "deep.b A"]
    assert after.soa.serial == 2


def test_one_value_is_deleted_whatever_ttl_it_has() -> None:
    assert values(updated(lambda u: u.delete(A, "A", "10.0.0.1"))) == (5, ["10.0.0.2"])


def test_the_last_value_takes_the_record_with_it() -> None:
    assert keys(updated(lambda u: u.delete(A, "A", "10.0.0.1", "10.0.0.2"))) == ["@ NS", "@ SOA", "a TXT", "deep.b A"]


def test_a_name_is_deleted_with_all_its_records_and_none_below_it() -> None:
    assert keys(updated(lambda u: u.delete(A))) == ["@ NS", "@ SOA", "deep.b A"]
    assert keys(updated(lambda u: u.delete(f"b.{ZONE}."))) == ALL


@pytest.mark.parametrize(
    "edit",
    [
        lambda u: u.delete(f"z.{ZONE}."),
        lambda u: u.delete(A, "AAAA"),
        lambda u: u.delete(A, "A", "10.0.0.9"),
        lambda u: u.delete(A, "MX"),
    ],
)
def test_deleting_what_is_not_there_is_fine_and_changes_nothing(edit: Edit) -> None:
    zone = a_zone()

    assert updated(edit, zone) is zone


@pytest.mark.parametrize(
    "edit",
    [
        lambda u: u.delete(f"{ZONE}."),
        lambda u: u.delete(f"{ZONE}.", "SOA"),
        lambda u: u.delete(f"{ZONE}.", "NS"),
        lambda u: u.delete(f"{ZONE}.", "NS", f"ns.{ZONE}."),
        lambda u: u.delete(f"{ZONE}.", a_zone().soa),
    ],
)
def test_a_zone_keeps_its_soa_and_its_last_ns(edit: Edit) -> None:
    zone = a_zone()

    assert updated(edit, zone) is zone


def test_another_ns_of_the_zone_may_come_and_go() -> None:
    more = updated(lambda u: u.add(f"{ZONE}.", 60, "NS", "ns.other.com."))

    assert values(more, "", "NS")[1] == [f"ns.{ZONE}.", "ns.other.com."]
    assert values(updated(lambda u: u.delete(f"{ZONE}.", "NS", f"ns.{ZONE}."), more), "", "NS")[1] == ["ns.other.com."]


def test_changes_are_carried_out_in_their_order() -> None:
    def edit(update: UpdateMessage) -> None:
        update.add(A, 5, "A", "10.0.0.8")
        update.delete(A, "A")
        update.add(A, 5, "A", "10.0.0.9")

    assert values(updated(edit)) == (5, ["10.0.0.9"])


def test_a_replacement_is_seen_as_one_change() -> None:
    zone = a_zone()
    after = updated(lambda u: u.replace(A, 5, "A", "10.0.0.9"), zone)

    assert [change.key for change in zone.changes_to(after)] == [(f"a.{ZONE}", "A"), (ZONE, "SOA")]


@pytest.mark.parametrize(
    ("before", "serial", "after"),
    [(1, 10, 10), (10, 10, 10), (10, 9, 10), (2**32 - 1, 1, 1), (1, 2**31 + 5, 1)],
)
def test_a_serial_told_counts_only_if_it_is_newer(before: int, serial: int, after: int) -> None:
    soa = f"ns.{ZONE}. hostmaster.{ZONE}. {serial} 1 1 1 5"

    assert updated(lambda u: u.add(f"{ZONE}.", 5, "SOA", soa), a_zone(before)).soa.serial == after


def test_the_serial_goes_around() -> None:
    assert updated(lambda u: u.delete(A), a_zone(2**32 - 1)).soa.serial == 0


@pytest.mark.parametrize(
    ("rdclass", "kind"),
    [
        (dns.rdataclass.ANY, RdataType.AXFR),
        (dns.rdataclass.ANY, RdataType.TSIG),
        (dns.rdataclass.NONE, RdataType.ANY),
    ],
)
def test_types_that_are_no_records_are_malformed(rdclass: dns.rdataclass.RdataClass, kind: RdataType) -> None:
    rrset = dns.rrset.RRset(dns.name.from_text(A), dns.rdataclass.IN, kind, deleting=rdclass)
    message = sent(lambda u: u.add(A, 5, "A", "10.0.0.9"))
    message.update.append(rrset)

    with pytest.raises(UpdateRefused) as caught:
        carry_out(a_zone(), message)
    assert caught.value.code.name == "FORMERR"


def test_a_record_of_another_class_is_malformed() -> None:
    message = sent(lambda u: u.add(A, 5, "A", "10.0.0.9"))
    message.update.append(dns.rrset.from_text(A, 5, "CH", "TXT", '"x"'))

    with pytest.raises(UpdateRefused) as caught:
        carry_out(a_zone(), message)
    assert caught.value.code.name == "FORMERR"


def test_the_zone_that_was_is_never_touched() -> None:
    zone = a_zone()

    updated(lambda u: u.delete(A), zone)

    assert keys(zone) == ALL
    assert zone.soa.serial == 1
