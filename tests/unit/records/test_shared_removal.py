"""Unrequested values are removed after a grace time, and never many at once."""

from __future__ import annotations

import pytest

from builders.owners import (
    GRACE,
    THEM,
    US,
    Cluster,
    a_cluster,
    a_mark,
    a_record,
    a_want,
    afters,
    owned,
    the_marks,
    wants,
)
from protokube.records.guard import CAP_VALUES, Left, Removal
from protokube.records.owners import Want
from protokube.records.shared import plan_shared

ONE, TWO, THREE = "10.0.0.1", "10.0.0.2", "10.0.0.3"


def settled(asked: list[Want]) -> Cluster:
    cluster = a_cluster()
    cluster.settle(asked)
    return cluster


def late(cluster: Cluster, asked: list[Want]) -> Cluster:
    """The same cluster, once the grace time of what is not asked for is over."""
    cluster.plan(asked)
    cluster.now += GRACE
    return cluster


def test_a_value_goes_after_its_grace_time_and_the_plan_says_when() -> None:
    cluster = settled([a_want()])
    cluster.now = 1000.0

    first = cluster.plan([])
    cluster.now += GRACE - 1
    second = cluster.plan([])
    cluster.now += 1
    third = cluster.plan([])

    assert (first.units, second.units) == ((), ())
    assert (first.look_again_at, second.look_again_at, third.look_again_at) == (1030.0, 1030.0, None)
    assert first.absent == {owned(): 1000.0}
    assert first.left == (
        Left(
            name="web.dev",
            kind="waits",
            why="A 10.0.0.1 is asked for by nobody and goes after the grace time",
            by=("pod/default/web",),
        ),
    )
    assert third.removals == (owned(),)
    assert afters(third.units) == [None, None]
    assert third.absent == {owned(): 1000.0}, "if it cannot be carried out, the grace time does not begin anew"


def test_a_value_that_is_asked_for_again_begins_its_grace_time_anew() -> None:
    cluster = settled([a_want()])
    late(cluster, [])

    assert cluster.plan([a_want()]).absent == {}
    assert cluster.plan([]).units == ()


def test_nothing_goes_unless_the_sources_were_read_completely() -> None:
    cluster = settled([a_want(), a_want(TWO, "pod/default/b")])
    late(cluster, [])

    plan = cluster.plan([a_want(THREE)], allowed=False)

    assert afters(plan.units)[1] == a_record(ONE, TWO, THREE)
    assert [left.why for left in plan.left] == [
        "A 10.0.0.1 stays: the sources were not read completely",
        "A 10.0.0.2 stays: the sources were not read completely",
    ]
    assert {left.kind for left in plan.left} == {"held"}


def test_no_reason_given_is_no_permission() -> None:
    cluster = settled([a_want()])
    late(cluster, [])

    for removal in (
        Removal(allowed=False, why="", now=cluster.now, grace=0),
        Removal(allowed=True, now=cluster.now, grace=0, kept={owned(): ""}),
        Removal(allowed=False, why="no answer", now=cluster.now, grace=0, forced=True, exempt=[owned()]),
    ):
        plan = plan_shared(cluster.dns.list_records(), [], owner=US, ttl=60, removal=removal)
        assert (plan.units, [left.kind for left in plan.left]) == ((), ["held"])


def test_a_grace_time_does_not_begin_by_a_list_that_was_not_complete_and_is_not_lost_by_one() -> None:
    cluster = settled([a_want()])

    assert cluster.plan([], allowed=False).absent == {}
    cluster.plan([])
    cluster.now += GRACE
    assert cluster.plan([], allowed=False).absent == {owned(): cluster.now - GRACE}
    assert cluster.plan([]).removals == (owned(),)


def test_not_even_a_mark_goes_while_nothing_may_go() -> None:
    cluster = settled([a_want()])

    plan = cluster.plan([a_want(by="pod/default/other")], allowed=False)

    assert afters(plan.units) == [the_marks(a_mark(), a_mark(by="pod/default/other"))]


def test_what_its_object_still_asks_for_stays_and_the_others_go() -> None:
    cluster = settled([a_want(), a_want(TWO, "pod/default/b")])
    late(cluster, [])

    plan = cluster.plan([], kept=[owned()])

    assert plan.removals == (owned(TWO, "pod/default/b"),)
    assert afters(plan.units) == [the_marks(a_mark()), a_record(ONE)]
    assert [left.why for left in plan.left] == ["A 10.0.0.1 stays: it is still asked for"]
    assert owned() in plan.absent, "how long it is missed is not forgotten"


def test_after_a_restart_what_is_right_stays_and_what_is_wrong_waits_its_whole_time() -> None:
    cluster = settled([a_want(), a_want(TWO, "pod/default/gone")])
    restarted = Cluster(cluster.dns, now=cluster.now)

    assert restarted.plan([a_want()]).units == ()
    restarted.now += GRACE
    assert restarted.plan([a_want()]).removals == (owned(TWO, "pod/default/gone"),)


def test_a_clock_that_went_back_makes_nothing_go_early() -> None:
    cluster = settled([a_want()])
    cluster.absent = {owned(): cluster.now + 1000}

    plan = cluster.plan([])

    assert plan.units == ()
    assert plan.absent == {owned(): cluster.now}


def test_ten_values_may_go_however_little_we_own() -> None:
    cluster = late(settled(wants(CAP_VALUES)), [])

    assert len(cluster.plan([]).removals) == CAP_VALUES


def test_eleven_of_fifty_values_may_not_go_at_once_and_all_of_them_stay() -> None:
    asked = wants(50)
    cluster = late(settled(asked), asked[11:])

    plan = cluster.plan(asked[11:])

    assert (plan.units, plan.removals, plan.owned) == ((), (), 50)
    assert [left.kind for left in plan.left] == ["held"] * 11
    assert plan.left[0].why == "A 10.0.0.1 stays: 11 of 50 values would go at once, more than 10"
    assert len(plan.absent) == 11


def test_a_fifth_of_what_we_own_may_go_at_once() -> None:
    asked = wants(100)
    assert len(late(settled(asked), asked[20:]).plan(asked[20:]).removals) == 20
    assert late(settled(asked), asked[21:]).plan(asked[21:]).removals == ()


def test_the_cap_counts_values_and_not_names() -> None:
    many = [a_want(f"10.0.1.{number}", f"pod/default/{number}") for number in range(12)]
    cluster = late(settled(many), [])

    assert cluster.plan([]).removals == ()


def test_the_values_of_others_do_not_raise_the_cap() -> None:
    cluster = settled(wants(11))
    a_cluster(dns=cluster.dns, owner=THEM).settle([a_want(TWO, f"x{n}", f"x{n}.dev") for n in range(100)])

    assert late(cluster, []).plan([]).removals == ()


def test_above_the_cap_the_rest_of_the_plan_is_carried_out() -> None:
    asked = wants(50)
    moved = a_want(TWO, asked[49].by, asked[49].name)
    new = a_want(name="new.dev")
    cluster = late(settled(asked), asked[20:])

    plan = cluster.plan([*asked[20:49], moved, new])

    assert [unit.name for unit in plan.units] == ["n0049.dev", "new.dev"]


def test_an_empty_source_deletes_nothing_of_a_large_zone() -> None:
    cluster = settled(wants(200))
    for _ in range(20):
        assert cluster.plan([]).units == ()
        cluster.now += GRACE


def test_a_person_may_force_it_past_the_cap_and_past_nothing_else() -> None:
    cluster = settled(wants(50))

    assert cluster.plan([], forced=True).units == ()
    cluster.now += GRACE
    assert cluster.plan([], forced=True, allowed=False).units == ()
    assert len(cluster.plan([], forced=True, kept=[owned(by="pod/default/n0000", name="n0000.dev")]).units) == 49


def test_what_is_known_to_be_gone_goes_at_once_and_is_not_counted() -> None:
    asked = wants(50)
    exempt = [owned(by=want.by, name=want.name) for want in asked[:30]]
    cluster = settled(asked)

    assert len(cluster.plan(asked[30:], exempt=exempt).removals) == 30
    cluster.now += GRACE
    assert len(cluster.plan([], exempt=exempt).removals) == 30, "the other twenty are still too many"


def test_a_pod_that_moved_changes_its_value_at_once() -> None:
    cluster = settled([a_want()])

    plan = cluster.plan([a_want(TWO)])

    assert afters(plan.units) == [the_marks(a_mark(TWO)), a_record(TWO)]
    assert (plan.replaced, plan.removals, plan.absent) == ((owned(),), (), {})
    assert plan.units[0].changes[1].why == "10.0.0.1 no longer for pod/default/web, 10.0.0.2 for pod/default/web"


def test_a_pod_that_moved_to_another_node_changes_its_nodes_address_at_once() -> None:
    cluster = settled([a_want(by="pod/default/web>node/n1")])

    plan = cluster.plan([a_want(TWO, by="pod/default/web>node/n2")])

    assert afters(plan.units)[1] == a_record(TWO)


def test_a_node_that_a_service_loses_has_its_grace_time_even_if_another_one_comes() -> None:
    nodes = [a_want(f"10.0.0.{number}", f"service/default/web>node/n{number}") for number in (1, 2, 3)]
    cluster = settled(nodes[:2])

    plan = cluster.plan(nodes[1:])

    assert afters(plan.units)[1] == a_record(ONE, TWO, THREE)
    assert (len(plan.absent), plan.replaced) == (1, ())


def test_what_an_object_has_new_in_one_family_replaces_nothing_in_the_other() -> None:
    cluster = settled([a_want(ONE)])

    plan = cluster.plan([a_want("2001:db8::1")])

    assert list(plan.absent) == [owned(ONE)]
    assert plan.replaced == ()


def test_an_object_that_only_asks_for_less_replaces_nothing() -> None:
    cluster = settled([a_want(ONE), a_want(TWO)])

    plan = cluster.plan([a_want(TWO)])

    assert plan.units == ()
    assert list(plan.absent) == [owned(ONE)]


def test_values_that_are_replaced_are_not_bound_by_the_cap() -> None:
    asked = wants(100)
    cluster = settled(asked)

    plan = cluster.plan([a_want(TWO, want.by, want.name) for want in asked])

    assert len(plan.units) == len(plan.replaced) == 100


def test_what_would_be_replaced_stays_if_the_new_value_cannot_come() -> None:
    """Another cluster has addresses there, which exclude the CNAME; our address is the only value of our object."""
    cluster = settled([a_want()])
    a_cluster(dns=cluster.dns, owner=THEM).settle([a_want(TWO)])

    plan = cluster.plan([a_want("lb.example.com")])

    assert plan.units == ()
    assert plan.replaced == ()
    assert list(plan.absent) == [owned()]


def test_an_alias_that_has_to_wait_for_another_objects_address_takes_no_address_away_before() -> None:
    cluster = settled([a_want(ONE), a_want(TWO, "pod/default/b")])

    plan = cluster.plan([a_want("lb.example.com")])
    assert plan.units == ()

    cluster.settle([a_want("lb.example.com")])
    assert cluster.dns.read(["web.dev"]) == (a_record("lb.example.com"),)


@pytest.mark.parametrize("allowed", [True, False])
def test_a_value_that_another_object_asks_for_as_well_is_not_lost(allowed: bool) -> None:
    cluster = settled([a_want()])

    plan = cluster.plan([a_want(by="pod/default/a"), a_want(TWO)], allowed=allowed)
    cluster.carry_out(plan)

    assert cluster.dns.read(["web.dev"]) == (a_record(ONE, TWO),)
    assert plan.removals == ()


def test_a_value_that_passes_from_one_object_to_another_is_told_so_that_the_first_can_be_asked() -> None:
    """If it still exists, its mark stays next to that of the other, so the value stays when one of the two leaves."""
    cluster = settled([a_want(by="pod/default/elder")])
    line = owned(by="pod/default/elder")

    plan = cluster.plan([a_want(by="pod/default/younger")])
    assert (plan.passed, plan.removals, plan.replaced) == ((line,), (), ())

    cluster.carry_out(cluster.plan([a_want(by="pod/default/younger")], kept=[line]))
    assert {each.mark.by for each in cluster.marks()} == {"pod/default/elder", "pod/default/younger"}
    cluster.now += 10 * GRACE
    cluster.plan([], kept=[line])
    cluster.now += 10 * GRACE
    plan = cluster.plan([], kept=[line])
    assert [each.mark.by for each in plan.removals] == ["pod/default/younger"]
    cluster.carry_out(plan)
    assert cluster.dns.read(["web.dev"]) == (a_record(ONE),)
