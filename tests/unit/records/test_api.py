"""The names of the API hold exactly their addresses of the live masters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.errors import Refused
from protokube.records import Change, Record
from protokube.records.api import TTL, plan_api
from protokube.records.names import make_record

NAMES = ("api.internal.dev", "api.dev")
ONE, TWO, THREE, SIX = "10.0.0.1", "10.0.0.2", "10.0.0.3", "2001:db8::1"


def a_record(*addresses: str, name: str = "api.dev", ttl: int = TTL) -> Record:
    return make_record(name, "AAAA" if ":" in addresses[0] else "A", addresses, ttl)


def under_both(*addresses: str) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(NAMES, addresses)


def test_the_first_master_is_published_under_every_name() -> None:
    plan = plan_api([], under_both(ONE))

    assert [change.after for change in plan.changes] == [a_record(ONE), a_record(ONE, name="api.internal.dev")]
    assert all(change.before is None for change in plan.changes)
    assert plan.why == "live masters: 10.0.0.1"


def test_a_dead_master_leaves_the_record_and_the_plan_says_why() -> None:
    plan = plan_api([a_record(ONE, TWO, THREE)], {"api.dev": [THREE, ONE]})

    assert plan.changes == (
        Change(before=a_record(ONE, TWO, THREE), after=a_record(ONE, THREE), why="10.0.0.2 no longer lives"),
    )


def test_a_new_master_joins_and_a_foreign_address_goes() -> None:
    plan = plan_api([a_record(ONE, "203.0.113.123")], {"api.dev": [ONE, TWO]})

    assert [change.after for change in plan.changes] == [a_record(ONE, TWO)]
    assert plan.changes[0].why == "203.0.113.123 no longer lives, 10.0.0.2 lives"


def test_each_name_has_its_own_addresses_and_a_moved_one_is_not_called_dead() -> None:
    plan = plan_api([a_record(ONE)], {"api.internal.dev": [ONE, TWO], "api.dev": ["203.0.113.1", TWO]})

    assert [(change.after, change.why) for change in plan.changes] == [
        (a_record(TWO, "203.0.113.1"), "10.0.0.1 is only for api.internal.dev, 10.0.0.2 lives, 203.0.113.1 lives"),
        (a_record(ONE, TWO, name="api.internal.dev"), "10.0.0.1 lives, 10.0.0.2 lives"),
    ]


def test_a_name_without_addresses_keeps_its_last_ones_while_the_other_changes() -> None:
    plan = plan_api([a_record(ONE)], {"api.internal.dev": [TWO], "api.dev": []})

    assert [change.key for change in plan.changes] == [("api.internal.dev", "A")]


def test_the_last_address_is_never_removed() -> None:
    plan = plan_api([a_record(ONE)], under_both())

    assert plan.changes == ()
    assert "no master is known to live" in plan.why


def test_before_the_first_master_there_is_no_placeholder() -> None:
    assert plan_api([], under_both()).changes == ()


def test_nothing_is_written_when_all_is_as_it_should_be() -> None:
    observed = [a_record(ONE, TWO), a_record(ONE, TWO, name="api.internal.dev")]

    assert plan_api(observed, under_both(TWO, ONE, TWO)).changes == ()


def test_a_long_ttl_is_shortened() -> None:
    plan = plan_api([a_record(ONE, ttl=300)], {"api.dev": [ONE]})

    assert [(change.after, change.why) for change in plan.changes] == [(a_record(ONE), "TTL 10")]


def test_each_family_has_its_record() -> None:
    plan = plan_api([], {"api.dev": [SIX, ONE]})

    assert [change.after for change in plan.changes] == [a_record(ONE), a_record(SIX)]


def test_a_family_without_live_masters_goes_once_the_other_one_answers() -> None:
    plan = plan_api([a_record(ONE)], {"api.dev": [SIX]})

    assert [(change.key, change.after) for change in plan.changes] == [
        (("api.dev", "A"), None),
        (("api.dev", "AAAA"), a_record(SIX)),
    ]


def test_other_records_at_the_name_are_left_alone() -> None:
    text = make_record("api.dev", "TXT", ["owner"], 60)

    assert plan_api([text, a_record(ONE)], {"api.dev": [ONE]}).changes == ()


def test_names_in_any_spelling_are_one_name() -> None:
    assert len(plan_api([], {"API.dev.": [ONE], "api.dev": [ONE]}).changes) == 1


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(Refused):
        plan_api([], under_both(ONE, "0.0.0.0"))


ADDRESSES = st.sets(st.sampled_from([ONE, TWO, THREE, SIX, "2001:db8::2"]))


@given(ADDRESSES, ADDRESSES)
def test_whatever_was_there_the_result_is_the_live_masters_or_what_was_there(before: set[str], live: set[str]) -> None:
    families = ({each for each in before if ":" not in each}, {each for each in before if ":" in each})
    zone = {record.key: record for record in (a_record(*family) for family in families if family)}

    for change in plan_api(list(zone.values()), {"api.dev": live}).changes:
        if change.after:
            zone[change.key] = change.after
        else:
            del zone[change.key]

    assert {value for record in zone.values() for value in record.values} == (live or before)
    assert plan_api(list(zone.values()), {"api.dev": live}).changes == ()
