"""What only servers have: wildcards, aliases, texts in pieces, keys, and zones that others write to as well."""

from __future__ import annotations

from collections.abc import Callable

import dns.message
import pytest

from conformance.dns.conftest import PATIENT, SERVERS
from fakes.name_servers import LOOPBACK, STRANGER, ZONE, Running, a_text, an_address, an_alias, change, create, delete
from protokube.errors import Refused, TryLater
from protokube.providers.dns import BadRecord, Stale
from protokube.providers.dns.keys import new_key
from protokube.providers.dns.rfc2136 import Rfc2136Dns
from protokube.records import Record
from protokube.records.batches import bisect


def provider(served: Running) -> Rfc2136Dns:
    return Rfc2136Dns(ZONE, LOOPBACK, served.key, port=served.port, read_seconds=PATIENT)


def by_hand(served: Running, *lines: tuple[str, str, str]) -> None:
    """Somebody else writes to the zone."""
    update = served.update()
    for name, kind, value in lines:
        update.add(f"{name}.{ZONE}.", 5, kind, value)
    assert served.ask(update, tcp=True).rcode().name == "NOERROR"


@pytest.mark.parametrize("covered_by", ["*", "*.internal"])
def test_a_name_that_only_a_wildcard_covers_is_not_there_and_can_be_made(served: Running, covered_by: str) -> None:
    by_hand(served, (covered_by, "A", "10.9.9.9"), (covered_by, "TXT", "everything"), ("x.internal", "A", "10.0.0.3"))
    if covered_by == "*":
        by_hand(served, ("internal", "TXT", "stops the star"))
    zone, name = provider(served), "etcd-a.internal" if covered_by == "*.internal" else "etcd-a"
    assert zone.read([f"{name}.{ZONE}"]) == ()

    zone.apply(create(an_address(name), a_text(name)))
    assert zone.read([f"{name}.{ZONE}"]) == (an_address(name), a_text(name))

    zone.apply([change(an_address(name), an_address(name, "10.0.0.2")), *delete(a_text(name))])
    assert zone.read([f"{name}.{ZONE}"]) == (an_address(name, "10.0.0.2"),)

    zone.apply(delete(an_address(name, "10.0.0.2")))
    assert zone.read([f"{name}.{ZONE}"]) == ()


def test_a_record_with_the_very_values_of_the_wildcard_is_there(served: Running) -> None:
    by_hand(served, ("*", "A", "10.0.0.1"))
    zone = provider(served)
    zone.apply(create(an_address("a")))

    assert zone.read([f"a.{ZONE}", f"b.{ZONE}"]) == (an_address("a"),)


def test_a_wildcard_itself_can_be_written_and_read(served: Running) -> None:
    zone = provider(served)
    zone.apply(create(an_address("*.apps")))

    assert zone.read([f"*.apps.{ZONE}"]) == (an_address("*.apps"),)
    assert an_address("*.apps") in zone.list_records()
    zone.apply(delete(an_address("*.apps")))


def test_a_text_kept_in_other_pieces_than_ours_can_be_changed(served: Running) -> None:
    by_hand(served, ("a", "TXT", '"he" "ll" "o"'), ("a", "TXT", '"second"'))
    zone = provider(served)
    both = a_text("a", "hello", "second")
    assert zone.read([f"a.{ZONE}"]) == (both,)

    zone.apply([change(both, a_text("a", "third")), *create(an_address("a"))])

    assert zone.read([f"a.{ZONE}"]) == (an_address("a"), a_text("a", "third"))


def test_a_text_in_pieces_still_has_to_be_what_was_seen(served: Running) -> None:
    by_hand(served, ("a", "TXT", '"he" "ll" "o"'))

    with pytest.raises(Stale):
        provider(served).apply([change(a_text("a", "jello"), a_text("a", "third"))])


def test_records_of_other_types_are_not_ours_and_stay(served: Running) -> None:
    by_hand(served, ("service", "SRV", f"0 0 2380 a.{ZONE}."))
    zone = provider(served)
    assert zone.read([f"service.{ZONE}"]) == ()

    zone.apply(create(an_address("service")))
    zone.apply(delete(an_address("service")))

    assert f"service.{ZONE}" not in {record.name for record in zone.list_records()}
    assert len(served.ask(dns.message.make_query(f"service.{ZONE}", "SRV")).answer) == 1


def test_an_alias_is_turned_away_and_not_silently_dropped(served: Running) -> None:
    """RFC 2136 has a server ignore an address beside an alias and report a success."""
    by_hand(served, ("alias", "CNAME", f"b.{ZONE}."), ("b", "A", "10.0.0.2"))
    zone = provider(served)
    assert zone.read([f"alias.{ZONE}"]) == (an_alias("alias", f"b.{ZONE}"),)

    with pytest.raises(BadRecord) as caught:
        zone.apply(create(an_address("alias")))
    done = bisect(create(an_address("alias"), an_address("c")), zone.apply, BadRecord)

    assert "CNAME" in str(caught.value)
    assert [change.key[0] for change in done.applied] == [f"c.{ZONE}"]
    assert [change.key[0] for change, _ in done.quarantined] == [f"alias.{ZONE}"]


OTHERS = {
    "embedded": ("SRV", f"0 0 2380 b.{ZONE}."),
    "bind": ("MX", "10 mail.example.net."),
    "knot": ("CAA", '0 issue "b.test"'),
}


@pytest.mark.parametrize("kind", SERVERS)
def test_an_alias_never_comes_beside_a_type_that_we_do_not_handle(kind: str, servers: Callable[[str], Running]) -> None:
    """The server would delete the address, drop the alias and report a success."""
    served = servers(kind)
    served.empty()
    by_hand(served, ("a", *OTHERS[kind]), ("b", *OTHERS[kind]), ("a", "A", "10.0.0.1"))
    zone = provider(served)

    for batch in ([*delete(an_address("a")), *create(an_alias("a"))], create(an_alias("b"))):
        with pytest.raises(BadRecord) as caught:
            zone.apply(batch)
        assert f"{OTHERS[kind][0]} where an alias" in str(caught.value)

    assert zone.read([f"a.{ZONE}", f"b.{ZONE}"]) == (an_address("a"),)


def test_what_only_a_wildcard_alias_covers_is_not_there_and_can_be_made(served: Running) -> None:
    by_hand(served, ("*.apps", "CNAME", f"b.{ZONE}."), ("b", "A", "10.0.0.2"))
    zone = provider(served)
    assert zone.read([f"x.apps.{ZONE}"]) == ()

    zone.apply(create(an_address("x.apps"), an_alias("y.apps")))

    assert zone.read([f"x.apps.{ZONE}", f"y.apps.{ZONE}"]) == (an_address("x.apps"), an_alias("y.apps"))


def test_a_batch_that_does_not_fit_one_message_is_bisected(served: Running) -> None:
    records = [a_text(f"n{number:03}", "x" * 1000) for number in range(80)]
    with pytest.raises(BadRecord):
        provider(served).apply(create(*records))

    done = bisect(create(*records), provider(served).apply, BadRecord)

    assert len(done.applied) == 80
    assert [record for record in provider(served).list_records() if record.type == "TXT"] == records


@pytest.mark.parametrize("served", ["bind"], indirect=True)
def test_a_record_with_more_values_than_the_server_takes_does_not_block_the_others(served: Running) -> None:
    crowd = an_address("crowd", *(f"10.0.{number}.1" for number in range(150)))

    done = bisect(create(crowd, an_address("a"), an_address("z")), provider(served).apply, BadRecord)

    assert [change.key[0] for change in done.applied] == [f"a.{ZONE}", f"z.{ZONE}"]
    ((change_set_aside, why),) = done.quarantined
    assert change_set_aside.after == crowd
    assert "max-records-per-type" in why


def test_an_answer_too_long_for_udp_is_read_by_tcp(served: Running) -> None:
    large = an_address("large", *(f"2001:db8::{number + 1:x}" for number in range(90)))
    provider(served).apply(create(large))

    assert provider(served).read([large.name]) == (large,)


@pytest.mark.parametrize("name", ["protokube", "nobody"], ids=["wrong secret", "unknown key"])
def test_a_key_that_is_not_shared_is_refused_with_a_hint(served: Running, name: str) -> None:
    zone = Rfc2136Dns(ZONE, LOOPBACK, new_key(name), port=served.port, read_seconds=PATIENT)

    for call in (lambda: zone.apply(create(an_address("a"))), zone.list_records):
        with pytest.raises(Refused) as caught:
            call()
        assert "do not share the key" in str(caught.value)
        assert "same secret" in caught.value.hint
    assert provider(served).read([f"a.{ZONE}"]) == ()


def test_a_key_that_may_not_change_the_zone_is_refused(served: Running) -> None:
    zone = Rfc2136Dns(ZONE, LOOPBACK, STRANGER, port=served.port, read_seconds=PATIENT)

    for call in (lambda: zone.apply(create(an_address("a"))), zone.list_records):
        with pytest.raises(Refused) as caught:
            call()
        assert caught.value.hint
    assert provider(served).read([f"a.{ZONE}"]) == ()


def test_a_zone_that_is_not_served_is_refused(served: Running) -> None:
    zone = Rfc2136Dns("other.test", LOOPBACK, served.key, port=served.port, read_seconds=PATIENT)
    record = Record(name="a.other.test", type="A", values=("10.0.0.1",), ttl=5)

    for call in (lambda: zone.apply(create(record)), zone.list_records, lambda: zone.read([record.name])):
        with pytest.raises(Refused) as caught:
            call()
        assert not isinstance(caught.value, BadRecord | TryLater)
