"""The plan between two states of a zone."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from protokube.records import Change, Key, Record
from protokube.records.names import make_record
from protokube.records.plan import CAP_VALUES, RecordPlan, plan_records


def a_record(name: str, *values: str, ttl: int = 60) -> Record:
    return make_record(f"{name}.dev", "A", values or ("10.0.0.1",), ttl)


def a_plan(
    observed: Sequence[Record], desired: Sequence[Record], *, may_delete: bool = True, forced: bool = False
) -> RecordPlan:
    """Everything that is there is ours."""
    owned = [record.key for record in observed]
    return plan_records(observed, desired, owned=owned, may_delete=may_delete, forced=forced)


def addresses(count: int) -> list[str]:
    return [f"10.0.{number // 250}.{number % 250 + 1}" for number in range(count)]


def test_what_is_missing_is_made() -> None:
    wanted = a_record("a")

    assert a_plan([], [wanted]) == RecordPlan(changes=(Change(before=None, after=wanted, why="not there yet"),))


def test_nothing_to_do_is_an_empty_plan() -> None:
    assert a_plan([a_record("a")], [a_record("a")]) == RecordPlan(changes=())


def test_another_value_or_another_ttl_is_a_change() -> None:
    for after in (a_record("a", "10.0.0.2"), a_record("a", ttl=5)):
        assert a_plan([a_record("a")], [after]).changes == (Change(before=a_record("a"), after=after, why="differs"),)


def test_what_is_no_longer_wanted_goes() -> None:
    plan = a_plan([a_record("a"), a_record("b")], [a_record("a")])

    assert plan.changes == (Change(before=a_record("b"), after=None, why="no longer wanted"),)


def test_nothing_goes_unless_the_sources_were_read_completely() -> None:
    plan = a_plan([a_record("a"), a_record("b")], [a_record("a", "10.0.0.9")], may_delete=False)

    assert [change.after for change in plan.changes] == [a_record("a", "10.0.0.9")]
    assert plan.left == ("b.dev A keeps all its values: the sources were not read completely",)


def test_a_record_that_shrinks_keeps_its_values_and_gets_the_new_ones_while_nothing_may_go() -> None:
    observed, desired = a_record("a", "10.0.0.1", "10.0.0.2", "10.0.0.3"), a_record("a", "10.0.0.3", "10.0.0.4")

    plan = a_plan([observed], [desired], may_delete=False)

    assert [change.after for change in plan.changes] == [a_record("a", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")]
    assert len(plan.left) == 1


def test_a_record_that_only_shrinks_is_left_alone_while_nothing_may_go() -> None:
    plan = a_plan([a_record("a", "10.0.0.1", "10.0.0.2")], [a_record("a", "10.0.0.1")], may_delete=False)

    assert plan.changes == ()
    assert len(plan.left) == 1


def test_a_record_that_is_not_ours_is_never_touched() -> None:
    plan = plan_records([a_record("a"), a_record("b")], [a_record("a", "10.0.0.2")], owned=[], may_delete=True)

    assert plan == RecordPlan(changes=(), left=("a.dev A is there and not ours",))


def test_ten_values_may_go_however_little_we_own() -> None:
    observed = [a_record(f"n{number}") for number in range(CAP_VALUES)]

    assert len(a_plan(observed, []).changes) == CAP_VALUES


def test_eleven_of_fifty_values_may_not_go_at_once_and_all_of_them_stay() -> None:
    observed = [a_record(f"n{number:02}") for number in range(50)]

    plan = a_plan(observed, observed[11:])

    assert plan.changes == ()
    assert len(plan.left) == 11
    assert plan.left[0] == "n00.dev A keeps all its values: 11 values would go at once, more than 10"


def test_a_fifth_of_what_we_own_may_go_at_once() -> None:
    observed = [a_record(f"n{number:03}") for number in range(100)]

    assert len(a_plan(observed, observed[20:]).changes) == 20
    assert a_plan(observed, observed[21:]).changes == ()


def test_the_cap_counts_values_and_not_names() -> None:
    observed = [a_record("many", *addresses(12)), a_record("one")]

    assert a_plan(observed, observed[1:]).changes == ()
    assert a_plan(observed, [a_record("many", *addresses(3)), a_record("one")]).changes != ()


def test_an_empty_source_deletes_nothing_of_a_large_zone() -> None:
    observed = [a_record(f"n{number}") for number in range(1000)]

    assert a_plan(observed, []).changes == ()


def test_a_person_may_force_it() -> None:
    observed = [a_record(f"n{number}") for number in range(1000)]

    assert len(a_plan(observed, [], forced=True).changes) == 1000


def test_values_that_are_replaced_are_not_bound_by_the_cap() -> None:
    observed = [a_record(f"n{number}", "10.0.0.1") for number in range(100)]
    desired = [a_record(f"n{number}", "10.0.0.2") for number in range(100)]

    assert len(a_plan(observed, desired).changes) == 100


RECORDS = st.lists(
    st.builds(
        lambda name, values, ttl: a_record(name, *values, ttl=ttl),
        st.sampled_from("abcdef"),
        st.lists(st.sampled_from(addresses(5)), min_size=1, max_size=4),
        st.sampled_from([5, 60]),
    ),
    max_size=6,
    unique_by=lambda record: record.key,
)


@given(RECORDS, RECORDS, st.sets(st.sampled_from([(f"{name}.dev", "A") for name in "abcdef"])), st.booleans())
def test_every_plan_keeps_its_promises(
    observed: list[Record], desired: list[Record], owned: set[Key], may_delete: bool
) -> None:
    plan = plan_records(observed, desired, owned=owned, may_delete=may_delete)

    there = {record.key: record for record in observed}
    keys = [change.key for change in plan.changes]
    assert keys == sorted(set(keys))
    for change in plan.changes:
        assert change.before == there.get(change.key)
        assert change.before != change.after
        assert change.before is None or change.key in owned
        if not may_delete and change.before is not None:
            assert change.after is not None
            assert len(change.after.values) >= len(change.before.values)
    assert plan == plan_records(observed[::-1], desired[::-1], owned=owned, may_delete=may_delete)


@given(RECORDS, RECORDS)
def test_a_plan_carried_out_leaves_nothing_to_plan(observed: list[Record], desired: list[Record]) -> None:
    result = {record.key: record for record in observed}
    for change in a_plan(observed, desired, forced=True).changes:
        if change.after:
            result[change.key] = change.after
        else:
            del result[change.key]

    assert a_plan(list(result.values()), desired, forced=True).changes == ()
    assert sorted(result.values()) == sorted(desired)
