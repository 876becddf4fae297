"""Batches as update messages: their size and their prerequisites."""

from __future__ import annotations

import dns.message
import dns.name
import dns.rdataclass
import dns.rdatatype
import dns.update
from hypothesis import given
from hypothesis import strategies as st

from fakes.name_servers import LOOPBACK, ZONE, a_text, an_address, an_alias, change, create, delete
from protokube.providers.dns.keys import new_key
from protokube.providers.dns.rfc2136 import BYTES_PER_UPDATE, Rfc2136Dns, _cost
from protokube.providers.dns.wire import update_message
from protokube.records import Change, Record

ORIGIN = dns.name.from_text(ZONE)
LABEL = st.text("abcdefgh", min_size=1, max_size=60)
RECORDS = st.one_of(
    st.builds(
        lambda name, last: an_address(name, *(f"10.0.0.{each}" for each in last)),
        LABEL,
        st.sets(st.integers(1, 250), min_size=1),
    ),
    st.builds(lambda name, texts: a_text(name, *texts), LABEL, st.sets(st.text(max_size=700), min_size=1, max_size=5)),
    st.builds(lambda name, target: an_alias(name, f"x{target}.test"), LABEL, LABEL),
)


@given(RECORDS, st.sampled_from(["create", "delete", "change"]), st.booleans())
def test_a_change_never_takes_more_bytes_than_it_is_counted_with(record: Record, what: str, neighbour: bool) -> None:
    made = {"create": create(record), "delete": delete(record), "change": [change(record, record)]}[what]
    other = an_address(record.name.removesuffix(f".{ZONE}"), "2001:db8::1")
    batch = [*made, *delete(other)] if neighbour else made

    head = len(update_message(ORIGIN, [], {}).to_wire())

    assert len(update_message(ORIGIN, batch, {}).to_wire()) - head <= sum(_cost(each)[0] for each in batch)


def test_many_changes_come_in_messages_of_half_the_size_that_there_can_be() -> None:
    zone = Rfc2136Dns(ZONE, LOOPBACK, new_key("protokube"))

    batches = zone.split([create(an_address(f"n{number}"), an_alias(f"c{number}")) for number in range(500)])

    sizes = [len(update_message(ORIGIN, batch, {}).to_wire()) for batch in batches]
    assert max(sizes) <= BYTES_PER_UPDATE
    assert sum(len(batch) for batch in batches) == 1000
    assert len(batches) < 10


def absent_types(batch: list[Change]) -> set[str]:
    """What must not be there, as a server reads it."""
    message = dns.message.from_wire(update_message(ORIGIN, batch, {}).to_wire())
    assert isinstance(message, dns.update.UpdateMessage)
    return {dns.rdatatype.to_text(each.rdtype) for each in message.prerequisite if each.deleting == dns.rdataclass.NONE}


def test_a_new_alias_asks_for_a_name_that_nobody_uses() -> None:
    assert absent_types(create(an_alias("a"))) == {"ANY", "CNAME"}
    assert absent_types(create(an_address("a"))) == {"CNAME", "A"}
    assert absent_types([change(an_alias("a"), an_alias("a", "x.test"))]) == set()


def test_an_alias_in_the_place_of_an_address_asks_for_the_absence_of_each_other_type() -> None:
    types = absent_types([*create(an_alias("a")), *delete(an_address("a"))])

    assert {"CNAME", "AAAA", "TXT", "MX", "SRV"} <= types
    assert "A" not in types
    assert "ANY" not in types


def test_what_goes_is_deleted_before_anything_comes() -> None:
    message = update_message(ORIGIN, [*create(an_alias("a")), *delete(an_address("a"))], {})

    steps = [(each.deleting is not None, dns.rdatatype.to_text(each.rdtype)) for each in message.update]
    assert steps.index((True, "A")) < steps.index((False, "CNAME"))
