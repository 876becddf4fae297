"""Records that no zone could hold are rejected before anything is sent."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.name_servers import ZONE, a_text, an_address, an_alias, change, create, delete
from protokube.providers.dns import BadRecord, Stale
from protokube.providers.dns.batch import carried_out, check, check_fresh, packed, together
from protokube.records import Change, Record

A = an_address("a")


@pytest.mark.parametrize(
    ("record", "wrong"),
    [
        (replace(A, name="a.other.com"), "outside of the zone"),
        (replace(A, name=f"a{ZONE}"), "outside of the zone"),
        (replace(A, name=f"A.{ZONE}"), "canonical form"),
        (replace(A, name=f"a.{ZONE}."), "canonical form"),
        (replace(A, name=f"a b.{ZONE}"), "is not a DNS name"),
        (replace(A, values=("10.0.0.2", "10.0.0.1")), "canonical form"),
        (replace(A, values=("10.0.0.1", "10.0.0.1")), "canonical form"),
        (replace(A, values=()), "without values"),
        (replace(A, values=("10.0.0.999",)), "is not an address"),
        (replace(A, values=("0.0.0.0",)), "is not an address of one machine"),
        (replace(A, values=("2001:db8::1",)), "other family"),
        (replace(A, type="AAAA"), "other family"),
        (replace(A, type="MX"), "none of the types"),
        (replace(A, ttl=-1), "TTL"),
        (an_alias("a", f"a.{ZONE}"), "alias of itself"),
        (replace(an_alias("a"), values=("b.dev", "c.dev")), "one other only"),
        (replace(an_alias("a"), name=ZONE), "top of a zone"),
        (replace(an_alias("a"), values=("b.dev.",)), "canonical form"),
        (replace(an_alias("a"), values=()), "without values"),
        (an_alias("a", ttl=-1), "TTL"),
        (replace(A, ttl=2**31), "TTL"),
        (a_text("a", "x" * 4097), "longer than 4096"),
        (a_text("a", "ü" * 2049), "longer than 4096"),
        (a_text("a", "\ud800"), "not UTF-8"),
        (a_text("a", "\udcc3\udca9"), "not UTF-8"),
    ],
)
def test_a_record_that_cannot_be_is_turned_away_with_its_reason(record: Record, wrong: str) -> None:
    for batch in (create(record), delete(record)):
        with pytest.raises(BadRecord) as caught:
            check(ZONE, batch)
        assert wrong in caught.value.saw
        assert record.name in caught.value.message


def test_a_change_from_nothing_to_nothing_is_turned_away() -> None:
    with pytest.raises(BadRecord):
        check(ZONE, [Change(before=None, after=None, why="by mistake")])


def test_a_change_of_one_name_to_another_is_turned_away() -> None:
    with pytest.raises(BadRecord):
        check(ZONE, [change(A, an_address("b"))])


def test_two_changes_of_one_record_are_turned_away() -> None:
    with pytest.raises(BadRecord) as caught:
        check(ZONE, [*create(A), *delete(A)])

    assert "twice" in str(caught.value)


def test_good_batches_pass() -> None:
    apex, wildcard = replace(A, name=ZONE), an_address("*.apps")

    check(ZONE, [])
    check(ZONE, [*create(apex, wildcard, a_text("a", "", "x" * 4096)), change(A, an_address("a", "10.0.0.2"))])


def test_a_batch_makes_changes_and_removes() -> None:
    current = {A.key: A, an_address("b").key: an_address("b")}

    after = carried_out(current, [*delete(A), *create(a_text("a")), change(an_address("b"), an_address("b", ttl=60))])

    assert after == {a_text("a").key: a_text("a"), an_address("b").key: an_address("b", ttl=60)}
    assert current == {A.key: A, an_address("b").key: an_address("b")}


@pytest.mark.parametrize("before", [None, an_address("a", "10.0.0.9"), an_address("a", "10.0.0.1", "10.0.0.2")])
def test_what_is_not_as_it_was_seen_is_stale_and_says_both(before: Record | None) -> None:
    with pytest.raises(Stale) as caught:
        check_fresh(Change(before=before, after=an_address("a", "10.0.0.3"), why=""), A)

    assert caught.value.saw == "'10.0.0.1'"
    assert f"a.{ZONE} A" in str(caught.value)


def test_what_is_gone_is_stale() -> None:
    with pytest.raises(Stale) as caught:
        check_fresh(change(A, an_address("a", "10.0.0.3")), None)

    assert (caught.value.saw, caught.value.want) == ("nothing", "'10.0.0.1'")


def test_the_ttl_is_not_compared() -> None:
    check_fresh(change(an_address("a", ttl=60), an_address("a", "10.0.0.3")), A)


@pytest.mark.parametrize("beside", [A, a_text("a"), an_address("a", "2001:db8::1")])
def test_nothing_may_stand_beside_an_alias_when_all_is_done(beside: Record) -> None:
    alias = an_alias("a")
    with pytest.raises(BadRecord) as caught:
        check(ZONE, create(beside, alias))
    assert f"{beside.type} beside an alias" in caught.value.saw

    for there, batch in ((alias, create(beside)), (beside, create(alias))):
        with pytest.raises(BadRecord):
            carried_out({there.key: there}, batch)
    assert carried_out({alias.key: alias}, [*create(beside), *delete(alias)]) == {beside.key: beside}


def test_what_others_did_elsewhere_does_not_matter() -> None:
    odd = {record.key: record for record in (an_alias("b"), a_text("b"))}

    assert A.key in carried_out(odd, create(A))


@given(st.lists(st.lists(st.integers(1, 12), max_size=4), max_size=20))
def test_units_are_packed_in_their_order_and_never_torn(sizes: list[list[int]]) -> None:
    units = [
        [create(an_address(f"n{number}x{part}", ttl=size))[0] for part, size in enumerate(unit)]
        for number, unit in enumerate(sizes)
    ]

    def cost(change: Change) -> tuple[int, int]:
        assert change.after is not None
        return change.after.ttl, 1

    batches = packed(units, cost, (20, 5))

    assert [each for batch in batches for each in batch] == [each for unit in units for each in unit]
    assert [list(batch) for batch in together(units)] == [[c for u in units for c in u]] * any(units)
    for batch in batches:
        inside = [unit for unit in units if unit and unit[0] in batch]
        assert [each for unit in inside for each in unit] == list(batch)
        total = tuple(map(sum, zip(*map(cost, batch), strict=True)))
        assert len(inside) == 1 or (total[0] <= 20 and total[1] <= 5)
    for left, right in pairwise(batches):
        first = next(unit for unit in units if unit and unit[0] in right)
        both = tuple(map(sum, zip(*map(cost, [*left, *first]), strict=True)))
        assert both[0] > 20 or both[1] > 5
