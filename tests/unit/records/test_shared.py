"""The plan for a zone that others write to as well."""

from __future__ import annotations

import pytest

from builders.owners import THEM, US, a_cluster, a_mark, a_record, a_want, afters, owned, the_marks
from protokube.errors import Refused
from protokube.providers.dns.memory import MemoryDns
from protokube.records import Change, Record
from protokube.records.batches import Unit
from protokube.records.guard import Left
from protokube.records.owners import Want

ONE, TWO, THREE, SIX, ALIAS = "10.0.0.1", "10.0.0.2", "10.0.0.3", "2001:db8::1", "lb.example.com"
OTHER = "service/default/other"


def summary(left: tuple[Left, ...]) -> list[tuple[str, str]]:
    return [(each.kind, each.why) for each in left]


def test_what_is_asked_for_is_put_there_together_with_its_mark() -> None:
    plan = a_cluster().plan([a_want()])

    assert plan.units == (
        Unit(
            "web.dev",
            (
                Change(before=None, after=the_marks(a_mark()), why="records who owns the values"),
                Change(before=None, after=a_record(ONE), why="10.0.0.1 for pod/default/web"),
            ),
        ),
    )
    assert (plan.left, plan.absent, plan.look_again_at) == ((), {}, None)


def test_nothing_is_written_when_all_is_as_asked_for() -> None:
    cluster = a_cluster(a_record(ONE, TWO), the_marks(a_mark(), a_mark(TWO, OTHER)))

    assert cluster.plan([a_want(), a_want(TWO, OTHER)]).units == ()


def test_each_family_has_its_record_and_all_are_one_unit() -> None:
    (unit,) = a_cluster().plan([a_want(), a_want(SIX)]).units

    assert [change.key for change in unit] == [("_protokube.web.dev", "TXT"), ("web.dev", "A"), ("web.dev", "AAAA")]


def test_a_wildcard_has_its_marks_at_a_name_without_a_star() -> None:
    (unit,) = a_cluster().plan([a_want(name="*.dev")]).units

    assert [change.key[0] for change in unit] == ["*.dev", "_protokube-star.dev"]


def test_two_clusters_contribute_to_one_name_and_either_can_leave() -> None:
    dns = MemoryDns("dev")
    ours, theirs = a_cluster(dns=dns), a_cluster(dns=dns, owner=THEM)
    ours.settle([a_want(ONE)])
    theirs.settle([a_want(TWO)])
    assert dns.read(["web.dev"]) == (a_record(ONE, TWO),)

    ours.settle()
    assert list(dns.list_records()) == [the_marks(a_mark(TWO, owner=THEM)), a_record(TWO)]

    theirs.settle()
    assert dns.list_records() == ()


def test_a_value_of_two_clusters_stays_until_both_have_left() -> None:
    dns = MemoryDns("dev")
    ours, theirs = a_cluster(dns=dns), a_cluster(dns=dns, owner=THEM)
    ours.settle([a_want()])
    theirs.settle([a_want()])

    ours.settle()
    assert list(dns.list_records()) == [the_marks(a_mark(owner=THEM)), a_record(ONE)]

    theirs.settle()
    assert dns.list_records() == ()


def test_a_record_that_is_not_ours_is_left_alone_with_words() -> None:
    plan = a_cluster(a_record("10.9.9.9")).plan([a_want()])

    assert plan.units == ()
    assert plan.left == (
        Left(name="web.dev", kind="refused", why="A 10.9.9.9 is there and not ours", by=("pod/default/web",)),
    )
    assert str(plan.left[0]) == "web.dev: A 10.9.9.9 is there and not ours"


def test_a_name_of_others_gets_no_record_of_the_other_family() -> None:
    plan = a_cluster(a_record("10.9.9.9")).plan([a_want(SIX)])

    assert plan.units == ()
    assert summary(plan.left) == [("refused", "A 10.9.9.9 is there and not ours")]


def test_what_others_put_beside_ours_in_the_other_family_keeps_its_record() -> None:
    cluster = a_cluster(a_record(ONE), the_marks(a_mark()), a_record("2001:db8::9"))

    plan = cluster.plan([a_want(), a_want(SIX), a_want(TWO)])

    assert afters(plan.units) == [the_marks(a_mark(), a_mark(TWO)), a_record(ONE, TWO)]
    assert summary(plan.left) == [("refused", "AAAA 2001:db8::9 is there and not ours")]


def test_what_is_right_already_by_another_hand_is_not_touched_and_does_not_become_ours() -> None:
    cluster = a_cluster(a_record(ONE))

    plan = cluster.plan([a_want()])

    assert plan.units == ()
    assert summary(plan.left) == [("right", "A 10.0.0.1 stands there already, and is not ours")]
    cluster.settle([])
    assert cluster.dns.list_records() == (a_record(ONE),)


def test_a_value_that_nobody_marked_stays_beside_ours_for_ever() -> None:
    cluster = a_cluster(a_record(ONE, "10.9.9.9"), the_marks(a_mark()))

    cluster.settle([a_want(TWO), a_want("10.9.9.9")])
    assert cluster.dns.read(["web.dev"]) == (a_record(TWO, "10.9.9.9"),)
    assert cluster.marks() == {owned(TWO)}

    cluster.settle([])
    assert cluster.dns.list_records() == (a_record("10.9.9.9"),)


def test_a_line_that_is_no_mark_stays_in_its_record_for_ever() -> None:
    odd = ["heritage=other", "protokube/2 cluster-a A 10.0.0.1 pod/x", "protokube/1 cluster-a MX x pod/x", ""]
    cluster = a_cluster(the_marks(*odd))

    cluster.settle([a_want()])
    assert cluster.dns.read(["_protokube.web.dev"]) == (the_marks(*odd, a_mark()),)

    cluster.settle([])
    assert cluster.dns.list_records() == (the_marks(*odd),)


def test_a_person_may_give_a_name_to_us_and_what_nobody_asks_for_there_goes_as_ours_does() -> None:
    cluster = a_cluster(a_record(ONE, "10.9.9.9"))

    plan = cluster.plan([a_want(), a_want(TWO)], adopt=["web.dev"])
    cluster.carry_out(plan)

    assert cluster.dns.read(["web.dev"]) == (a_record(ONE, TWO, "10.9.9.9"),)
    assert cluster.marks() == {owned(), owned(TWO), owned("10.9.9.9", by="adopted")}
    cluster.settle([a_want(), a_want(TWO)])
    assert cluster.dns.read(["web.dev"]) == (a_record(ONE, TWO),)


def test_an_adopted_name_at_which_nothing_is_asked_for_is_left_alone() -> None:
    cluster = a_cluster(a_record("10.9.9.9"))

    assert cluster.plan([], adopt=["web.dev"]).units == ()


def test_adopting_never_takes_what_another_cluster_marked() -> None:
    cluster = a_cluster(a_record(TWO), the_marks(a_mark(TWO, owner=THEM)))

    for _ in range(3):
        cluster.carry_out(cluster.plan([a_want()], adopt=["web.dev"]))
        cluster.now += 1000

    assert cluster.dns.read(["web.dev"]) == (a_record(ONE, TWO),)
    assert a_cluster(dns=cluster.dns, owner=THEM).marks() != set()


def test_an_alias_of_others_that_is_adopted_gives_way_in_one_unit() -> None:
    cluster = a_cluster(a_record(ALIAS))

    cluster.carry_out(cluster.plan([a_want()], adopt=["web.dev"]))
    assert cluster.dns.read(["web.dev"]) == (a_record(ALIAS),)

    cluster.settle([a_want()])
    assert cluster.dns.read(["web.dev"]) == (a_record(ONE),)


@pytest.mark.parametrize(
    ("there", "asked", "why"),
    [
        (a_record(ONE), ALIAS, "CNAME lb.example.com cannot stand beside A 10.0.0.1, which is there and not ours"),
        (a_record(ALIAS), ONE, "A 10.0.0.1 cannot stand beside CNAME lb.example.com, which is there and not ours"),
        (
            a_record("b.example.com"),
            ALIAS,
            "CNAME lb.example.com cannot stand beside CNAME b.example.com, which is there and not ours",
        ),
        (
            Record(name="web.dev", type="TXT", values=("x",), ttl=60),
            ALIAS,
            "CNAME lb.example.com cannot stand beside the TXT record there",
        ),
    ],
    ids=["addresses", "alias", "another alias", "text"],
)
def test_an_alias_stands_alone_and_what_others_put_there_was_first(there: Record, asked: str, why: str) -> None:
    plan = a_cluster(there).plan([a_want(asked)])

    assert plan.units == ()
    assert summary(plan.left) == [("refused", why)]


def test_the_alias_of_another_cluster_stays_and_its_owner_is_named() -> None:
    plan = a_cluster(a_record("b.dev"), the_marks(a_mark("b.dev", owner=THEM))).plan([a_want(ALIAS)])

    assert plan.units == ()
    assert summary(plan.left) == [
        ("refused", "CNAME lb.example.com cannot stand beside CNAME b.dev, which is put there by cluster-b")
    ]


def test_two_clusters_may_hold_the_same_alias() -> None:
    cluster = a_cluster(a_record(ALIAS), the_marks(a_mark(ALIAS, owner=THEM)))

    assert afters(cluster.plan([a_want(ALIAS)]).units) == [the_marks(a_mark(ALIAS), a_mark(ALIAS, owner=THEM))]


@pytest.mark.parametrize(("before", "after"), [(ALIAS, ONE), (ONE, ALIAS), (ALIAS, "b.example.com")])
def test_an_object_that_has_an_address_instead_of_an_alias_or_back_switches_in_one_unit(
    before: str, after: str
) -> None:
    cluster = a_cluster()
    cluster.settle([a_want(before)])

    plan = cluster.plan([a_want(after)])
    cluster.carry_out(plan)

    assert len(plan.units) == 1
    assert plan.replaced == (owned(before),)
    assert cluster.dns.read(["web.dev"]) == (a_record(after),)
    assert cluster.marks() == {owned(after)}


def test_an_alias_of_ours_that_another_objects_address_follows_goes_first_after_its_grace_and_in_one_unit() -> None:
    cluster = a_cluster()
    cluster.settle([a_want(ALIAS)])

    waiting = cluster.plan([a_want(ONE, OTHER)])
    cluster.now += 30
    plan = cluster.plan([a_want(ONE, OTHER)])

    assert waiting.units == ()
    assert summary(waiting.left) == [
        ("waits", "A 10.0.0.1 cannot stand beside CNAME lb.example.com, which is ours and has to go first"),
        ("waits", "CNAME lb.example.com is asked for by nobody and goes after the grace time"),
    ]
    assert afters(plan.units) == [the_marks(a_mark(ONE, OTHER)), a_record(ONE), None]


def test_of_an_alias_and_an_address_asked_for_at_once_the_one_that_stands_stays() -> None:
    cluster = a_cluster()
    cluster.settle([a_want(ALIAS)])

    plan = cluster.plan([a_want(ONE, OTHER), a_want(ALIAS)])

    assert plan.units == ()
    assert summary(plan.left) == [
        ("refused", "A 10.0.0.1 cannot stand beside CNAME lb.example.com, which is asked for as well")
    ]


@pytest.mark.parametrize("adopt", [(), ("web.dev",)])
def test_an_alias_that_stands_keeps_out_an_address_that_is_ours_by_its_mark_alone(adopt: tuple[str, ...]) -> None:
    cluster = a_cluster(a_record(ALIAS), the_marks(a_mark(ONE, OTHER)))

    plan = cluster.plan([a_want(ONE, OTHER), a_want(ALIAS)], adopt=adopt)

    assert [change.key[1] for unit in plan.units for change in unit] == (["TXT"] if adopt else [])


def test_a_value_that_somebody_deleted_is_put_back_and_the_marks_guard_it() -> None:
    cluster = a_cluster(the_marks(a_mark()))

    (unit,) = cluster.plan([a_want()]).units

    assert [(change.before, change.after) for change in unit] == [
        (the_marks(a_mark()), the_marks(a_mark())),
        (None, a_record(ONE)),
    ]


def test_a_value_that_somebody_deleted_and_replaced_is_put_back_beside_the_other() -> None:
    cluster = a_cluster(a_record("10.9.9.9"), the_marks(a_mark()))

    cluster.settle([a_want()])

    assert cluster.dns.read(["web.dev"]) == (a_record(ONE, "10.9.9.9"),)


def test_a_deleted_value_that_nobody_asks_for_is_not_put_back_and_only_its_mark_goes() -> None:
    assert afters(a_cluster(the_marks(a_mark())).plan([]).units) == [None]


def test_a_record_of_ours_alone_gets_our_ttl_and_one_with_others_values_keeps_its_own() -> None:
    alone = a_cluster(a_record(ONE, ttl=5), the_marks(a_mark()))
    shared = a_cluster(a_record(ONE, TWO, ttl=5), the_marks(a_mark(), a_mark(TWO, owner=THEM), ttl=7))

    (unit,) = alone.plan([a_want()]).units
    assert [(change.after, change.why) for change in unit] == [
        (the_marks(a_mark()), "guards the others"),
        (a_record(ONE), "TTL 60"),
    ]
    assert shared.plan([a_want()]).units == ()
    assert afters(shared.plan([a_want(), a_want(THREE)]).units)[1] == a_record(ONE, TWO, THREE, ttl=5)


def test_another_object_that_asks_for_the_same_value_changes_the_mark_at_once_and_nothing_else() -> None:
    cluster = a_cluster(a_record(ONE), the_marks(a_mark()))

    plan = cluster.plan([a_want(by=OTHER)])

    assert afters(plan.units) == [the_marks(a_mark(by=OTHER))]
    assert (plan.removals, plan.replaced) == ((), ())


def test_names_that_somebody_else_looks_after_are_not_touched_whatever_the_marks_say() -> None:
    cluster = a_cluster(a_record(ONE), the_marks(a_mark()))

    plan = cluster.plan([a_want(TWO)], hands_off=["web.dev"])

    assert (plan.units, plan.absent, plan.owned) == ((), {}, 0)
    assert summary(plan.left) == [("refused", "somebody else manages this name")]


@pytest.mark.parametrize(
    ("want", "why"),
    [
        (a_want(name="_protokube.web.dev"), "this name holds the ownership marks of another name"),
        (a_want(name=".".join(["a" * 49] * 5)), "the name is too long to have a mark beside it"),
        (a_want(by="pod/a b"), "cannot be written into a mark: 'protokube/1 cluster-a A 10.0.0.1 pod/a b'"),
        (Want(name="web.dev", type="MX", value="x", by="pod/x"), "cannot be written into a mark: "),
    ],
    ids=["place of marks", "long", "blank", "type"],
)
def test_what_cannot_be_marked_is_not_put_there(want: Want, why: str) -> None:
    plan = a_cluster().plan([want, a_want(name="good.dev")])

    assert [unit.name for unit in plan.units] == ["good.dev"]
    assert [(left.name, left.kind) for left in plan.left] == [(want.name, "refused")]
    assert plan.left[0].why.startswith(why)


def test_an_owner_that_cannot_be_written_into_a_mark_is_refused() -> None:
    with pytest.raises(Refused, match="cannot be written into a mark"):
        a_cluster(owner="cluster a").plan([])


def test_units_come_out_by_name_and_say_what_they_do() -> None:
    plan = a_cluster().plan([a_want(name="b.dev"), a_want(name="a.dev")])

    assert [unit.name for unit in plan.units] == ["a.dev", "b.dev"]
    assert str(plan.units[0]) == (
        "_protokube.a.dev TXT: nothing -> protokube/1 cluster-a A 10.0.0.1 pod/default/web "
        "(records who owns the values); "
        "a.dev A: nothing -> 10.0.0.1 (10.0.0.1 for pod/default/web)"
    )


def test_the_same_mark_under_another_owner_is_not_ours() -> None:
    cluster = a_cluster(a_record(ONE), the_marks(a_mark(owner=US + "x")))

    cluster.settle([])

    assert cluster.dns.read(["web.dev"]) == (a_record(ONE),)
