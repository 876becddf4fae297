"""What every DNS provider does, whatever lies behind it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.dns.conftest import Zone
from fakes.name_servers import ZONE, a_text, an_address, change, create, delete
from protokube.errors import Refused, TryLater
from protokube.providers.dns import BadRecord, Stale
from protokube.records import Change, Record
from protokube.records.api import plan_api
from protokube.records.batches import bisect
from protokube.records.member import Publish, Settled, Yield, plan_member

A, B, TEXT, SIX = an_address("a"), an_address("b", "10.0.0.2"), a_text("a"), an_address("a", "2001:db8::1")
NAME_A = A.name


def read(zone: Zone, *names: str) -> list[Record]:
    return list(zone.provider.read([f"{name}.{ZONE}" for name in names]))


def test_it_knows_its_zone(zone: Zone) -> None:
    assert zone.provider.zone == ZONE


def test_an_empty_zone_reads_empty(zone: Zone) -> None:
    assert read(zone, "a", "b") == []
    assert zone.records() == []


def test_what_was_created_is_read_at_once_and_by_others(zone: Zone) -> None:
    zone.provider.apply(create(A))

    assert read(zone, "a") == [A]
    assert list(zone.connect().read([NAME_A])) == [A]


def test_every_type_comes_back_sorted_with_its_ttl(zone: Zone) -> None:
    records = [an_address("a", "10.0.0.3", "10.0.0.1", ttl=7), replace(SIX, ttl=8), a_text("a", "z", "a", ttl=9)]

    zone.provider.apply(create(*records))

    assert read(zone, "a") == sorted(records)


def test_reading_asks_for_these_names_only(zone: Zone) -> None:
    zone.provider.apply(create(A, B, an_address("x.a")))

    assert read(zone, "a", "z") == [A]


def test_names_are_asked_for_in_any_spelling_and_each_once(zone: Zone) -> None:
    zone.provider.apply(create(A))

    assert list(zone.provider.read([NAME_A, NAME_A.upper(), NAME_A + "."])) == [A]


def test_reading_nothing_is_nothing(zone: Zone) -> None:
    assert list(zone.provider.read([])) == []


def test_the_list_is_complete_and_sorted(zone: Zone) -> None:
    records = [an_address(f"n{number:02}", f"10.0.1.{number + 1}") for number in range(60)]
    zone.provider.apply(create(*records[::-1], TEXT, SIX))

    assert zone.records() == sorted([*records, TEXT, SIX])


def test_a_record_at_the_top_of_the_zone(zone: Zone) -> None:
    top = replace(A, name=ZONE)
    zone.provider.apply(create(top))

    assert list(zone.provider.read([ZONE])) == [top]


def test_a_value_changes(zone: Zone) -> None:
    after = an_address("a", "10.0.0.7", "10.0.0.8")
    zone.provider.apply(create(A, TEXT))

    zone.provider.apply([change(A, after)])

    assert read(zone, "a") == [after, TEXT]


def test_only_the_ttl_changes(zone: Zone) -> None:
    zone.provider.apply(create(A))

    zone.provider.apply([change(A, replace(A, ttl=60))])

    assert read(zone, "a") == [replace(A, ttl=60)]


def test_a_record_goes_and_its_neighbours_stay(zone: Zone) -> None:
    zone.provider.apply(create(A, TEXT, B))

    zone.provider.apply(delete(A))

    assert zone.records() == [TEXT, B]


def test_one_batch_makes_changes_and_removes(zone: Zone) -> None:
    zone.provider.apply(create(A, B))

    zone.provider.apply([*delete(A), change(B, an_address("b", "10.0.0.9")), *create(TEXT)])

    assert zone.records() == [TEXT, an_address("b", "10.0.0.9")]


def test_an_empty_batch_is_nothing(zone: Zone) -> None:
    zone.provider.apply([])

    assert zone.records() == []


@pytest.mark.parametrize(
    "stale",
    [
        create(A),
        create(an_address("a", "10.0.0.9")),
        [change(an_address("a", "10.0.0.9"), an_address("a", "10.0.0.7"))],
        [change(an_address("a", "10.0.0.1", "10.0.0.9"), an_address("a", "10.0.0.7"))],
        [change(SIX, an_address("a", "2001:db8::7"))],
        [change(a_text("a", "another"), a_text("a", "third"))],
        [change(a_text("a", "hello", "another"), a_text("a", "third"))],
        delete(an_address("z")),
        delete(an_address("a", "10.0.0.9")),
    ],
    ids=[
        "made twice",
        "made with another value",
        "another value",
        "one value more",
        "not there",
        "another text",
        "one text more",
        "no such name",
        "deleted with another value",
    ],
)
def test_a_change_planned_from_something_else_writes_nothing_at_all(zone: Zone, stale: list[Change]) -> None:
    zone.provider.apply(create(A, TEXT))

    with pytest.raises(Stale) as caught:
        zone.provider.apply([*create(B), *stale, *create(an_address("c"))])

    assert isinstance(caught.value, TryLater)
    assert stale[0].key[0] in str(caught.value)
    assert zone.records() == [A, TEXT]


def test_a_record_that_is_less_than_what_was_seen_is_stale(zone: Zone) -> None:
    both = an_address("a", "10.0.0.1", "10.0.0.2")
    zone.provider.apply(create(both))

    with pytest.raises(Stale):
        zone.provider.apply([change(A, an_address("a", "10.0.0.7"))])

    assert read(zone, "a") == [both]


def test_a_change_to_the_same_guards_the_others(zone: Zone) -> None:
    zone.provider.apply(create(A, TEXT))

    zone.provider.apply([change(TEXT, TEXT), change(A, an_address("a", "10.0.0.7"))])
    assert read(zone, "a") == [an_address("a", "10.0.0.7"), TEXT]

    other = a_text("a", "other")
    with pytest.raises(Stale):
        zone.provider.apply([change(other, other), change(an_address("a", "10.0.0.7"), A)])
    assert read(zone, "a") == [an_address("a", "10.0.0.7"), TEXT]


@pytest.mark.parametrize(
    "bad",
    [
        replace(A, name="a.other.com"),
        replace(A, name=f"a b.{ZONE}"),
        replace(A, values=("10.0.0.999",)),
        replace(A, values=()),
        replace(A, type="MX", values=("x",)),
    ],
    ids=["zone", "name", "address", "empty", "type"],
)
def test_a_bad_record_spoils_its_batch_and_bisecting_saves_the_others(zone: Zone, bad: Record) -> None:
    good = [an_address(f"n{number}") for number in range(6)]
    with pytest.raises(BadRecord) as caught:
        zone.provider.apply(create(good[0], bad, *good[1:]))
    assert isinstance(caught.value, Refused)
    assert zone.records() == []

    done = bisect(create(good[0], bad, *good[1:]), zone.provider.apply, BadRecord)

    assert zone.records() == good
    assert [change.after for change, _ in done.quarantined] == [bad]


@pytest.mark.parametrize(
    "text",
    ["", " ", "x" * 255, "x" * 256, "x" * 1000, 'say "x"; \\ # \t end', "ü€😀", "\udcff\udc80", "\n"],
    ids=["empty", "blank", "255", "256", "1000", "quotes", "utf-8", "bytes", "newline"],
)
def test_any_text_comes_back_as_it_was_and_can_be_changed(zone: Zone, text: str) -> None:
    before, after = a_text("a", text), a_text("a", text + "!")
    zone.provider.apply(create(before))
    assert read(zone, "a") == [before]

    zone.provider.apply([change(before, after)])
    assert zone.records() == [after]


def test_a_member_moves_from_machine_to_machine_and_never_back(zone: Zone) -> None:
    name = f"etcd-a.internal.{ZONE}"

    def step(address: str, epoch: int, holder: str) -> type:
        plan = plan_member(zone.provider.read([name]), name, address, epoch, holder)
        if isinstance(plan, Publish):
            zone.provider.apply(plan.changes)
        return type(plan)

    assert step("10.0.0.1", 1, "i-1") is Publish
    assert step("10.0.0.1", 1, "i-1") is Settled
    assert step("2001:db8::2", 2, "i-2") is Publish
    assert step("10.0.0.1", 1, "i-1") is Yield
    assert step("2001:db8::2", 2, "i-2") is Settled
    assert [record.values for record in zone.records()] == [("2001:db8::2",), ("protokube epoch=2 holder=i-2",)]


def test_the_api_follows_its_masters(zone: Zone) -> None:
    names = (f"api.internal.{ZONE}", f"api.{ZONE}")
    for live in (["10.0.0.1"], ["10.0.0.1", "10.0.0.2", "10.0.0.3"], ["10.0.0.3"], []):
        zone.provider.apply(plan_api(zone.provider.read(names), dict.fromkeys(names, live)).changes)

        assert plan_api(zone.provider.read(names), dict.fromkeys(names, live)).changes == ()
        assert {record.values for record in zone.records()} == {tuple(live or ["10.0.0.3"])}
