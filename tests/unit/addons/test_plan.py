"""What is applied, what is taken away, and above all what is not."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from builders.addons import a_ref, an_addon, an_object, found
from protokube.addons.plan import HOLDS_DATA, AddonPlan, plan, to_look_at
from protokube.addons.record import NUMBER, Record, Recorded, from_tree, number_of, to_tree
from protokube.addons.value import LABEL, Addon, Ref, Tree, label_of, ref

NAMES = st.sampled_from("abcdef")
KINDS = st.sampled_from(["ConfigMap", "Service", "Namespace", "PersistentVolumeClaim", "ClusterRole", "Deployment"])
OBJECTS = st.builds(lambda name, kind: an_object(name, kind), NAMES, KINDS)


@st.composite
def addon_lists(draw: st.DrawFn) -> list[Addon]:
    objects = draw(st.lists(OBJECTS, max_size=8, unique_by=lambda each: ref(each)))
    names = draw(st.permutations(["x", "y", "z"]))
    return [
        Addon(name=name, objects=tuple(each for index, each in enumerate(objects) if index % 3 == place))
        for place, name in enumerate(names)
    ]


@st.composite
def clusters(draw: st.DrawFn) -> dict[Ref, Tree]:
    """Whatever lies in a cluster, by anybody, labelled rightly or wrongly."""
    trees = draw(st.lists(OBJECTS, max_size=12, unique_by=lambda each: ref(each)))
    return {ref(each): found(each, draw(st.sampled_from(["", "", "x", "y", "z", "w"]))) for each in trees}


@st.composite
def records(draw: st.DrawFn) -> Record:
    refs = st.lists(OBJECTS.map(ref), max_size=6, unique=True).map(tuple)
    return draw(st.dictionaries(st.sampled_from("wxyz"), st.builds(Recorded, digest=st.just("old"), refs=refs)))


def carried_out(chosen: AddonPlan, cluster: dict[Ref, Tree]) -> dict[Ref, Tree]:
    after = dict(cluster)
    for name, tree in chosen.apply:
        which = ref(tree)
        after[which] = found(tree, name, uid=cluster[which]["metadata"]["uid"] if which in cluster else "")
    for each in chosen.prune:
        del after[each.ref]
    return after


@given(addon_lists(), records(), clusters())
def test_a_second_time_there_is_nothing_left_to_take_away_and_the_record_stays(
    wanted: list[Addon], record: Record, cluster: dict[Ref, Tree]
) -> None:
    first = plan(wanted, record, cluster)

    second = plan(wanted, first.after, carried_out(first, cluster))

    assert second.prune == ()
    assert second.after == second.during == first.after
    assert second.apply == first.apply
    assert second.left == first.left


@given(addon_lists(), records(), clusters())
def test_nothing_is_taken_away_that_is_not_recorded_and_labelled_or_that_holds_data(
    wanted: list[Addon], record: Record, cluster: dict[Ref, Tree]
) -> None:
    for each in plan(wanted, record, cluster).prune:
        assert each.ref in record[each.addon].refs
        assert label_of(cluster[each.ref]) == each.addon
        assert (each.ref.group, each.ref.kind) not in HOLDS_DATA
        assert each.ref not in {which for addon in wanted for which in addon.refs}
        assert each.uid == cluster[each.ref]["metadata"]["uid"]


@given(addon_lists(), clusters())
def test_a_lost_record_takes_nothing_away(wanted: list[Addon], cluster: dict[Ref, Tree]) -> None:
    assert plan(wanted, {}, cluster).prune == ()


@given(addon_lists(), records(), clusters())
def test_what_is_foreign_is_neither_changed_nor_recorded_as_ours(
    wanted: list[Addon], record: Record, cluster: dict[Ref, Tree]
) -> None:
    recorded = {which for entry in record.values() for which in entry.refs}
    foreign = {which for which, tree in cluster.items() if not label_of(tree) and which not in recorded}

    chosen = plan(wanted, record, cluster)

    assert foreign.isdisjoint(ref(tree) for _, tree in chosen.apply)
    assert foreign.isdisjoint(which for entry in chosen.after.values() for which in entry.refs)


@given(addon_lists(), records(), clusters())
def test_the_order_of_what_is_applied_is_the_order_in_which_it_was_asked_for(
    wanted: list[Addon], record: Record, cluster: dict[Ref, Tree]
) -> None:
    asked = [which for addon in wanted for which in addon.refs]
    applied = [ref(tree) for _, tree in plan(wanted, record, cluster).apply]

    assert applied == [which for which in asked if which in set(applied)]


@given(addon_lists(), records(), clusters())
def test_before_anything_is_touched_all_of_it_is_recorded(
    wanted: list[Addon], record: Record, cluster: dict[Ref, Tree]
) -> None:
    chosen = plan(wanted, record, cluster)
    known = {(name, which) for name, entry in chosen.during.items() for which in entry.refs}

    assert {(name, ref(tree)) for name, tree in chosen.apply} <= known
    assert {(each.addon, each.ref) for each in chosen.prune} <= known


@given(addon_lists(), records(), clusters(), st.data())
def test_what_could_not_be_looked_at_is_not_touched_and_while_there_is_any_nothing_is_taken_away_or_forgotten(
    wanted: list[Addon], record: Record, cluster: dict[Ref, Tree], data: st.DataObject
) -> None:
    looked = to_look_at(wanted, record)
    unseen = set(data.draw(st.lists(st.sampled_from(looked), min_size=1))) if looked else set()
    seen = {which: tree for which, tree in cluster.items() if which not in unseen}

    chosen, sure = plan(wanted, record, seen, unseen=unseen), plan(wanted, record, cluster)

    assert [each for each in sure.apply if ref(each[1]) not in unseen] == list(chosen.apply)
    if unseen:
        assert (chosen.prune, chosen.after) == ((), chosen.during)
    known = {(name, which) for name, entry in record.items() for which in entry.refs}
    recorded = {(name, which) for name, entry in chosen.during.items() for which in entry.refs}
    assert known <= recorded or not unseen
    assert not {which for _, which in recorded - known} & unseen  # whose it is nobody knows


@given(addon_lists(), records(), clusters())
def test_who_may_not_take_away_forgets_nothing_either(
    wanted: list[Addon], record: Record, cluster: dict[Ref, Tree]
) -> None:
    chosen, free = plan(wanted, record, cluster, takes_away=False), plan(wanted, record, cluster)

    assert (chosen.prune, chosen.after) == ((), chosen.during)
    assert (chosen.apply, chosen.during) == (free.apply, free.during)


@given(records(), st.integers(0, 10**12))
def test_the_number_of_a_record_reads_back_as_it_was_written(record: Record, number: int) -> None:
    assert number_of(to_tree(record, number)) == number


@given(st.text().filter(lambda each: not each.isdecimal()))
def test_a_record_whose_number_is_spoilt_allows_nothing_and_counts_as_the_oldest(number: str) -> None:
    tree = to_tree({"dns": Recorded(digest="1", refs=(a_ref(),))})
    tree["metadata"]["annotations"][NUMBER] = number

    assert (from_tree(tree), number_of(tree)) == ({}, 0)


@given(records())
def test_a_record_reads_back_as_it_was_written(record: Record) -> None:
    assert from_tree(to_tree(record)) == record


@given(st.dictionaries(st.text(max_size=5), st.text() | st.sampled_from(['{"digest": "x", "objects": [["a"]]}', "[]"])))
def test_a_spoilt_record_allows_nothing(data: dict[str, Any]) -> None:
    assert from_tree({"data": data}) == {}


def test_an_object_that_left_its_add_on_is_taken_away() -> None:
    old, new = an_object("old"), an_object("new")
    record = {"dns": Recorded(digest="1", refs=(ref(old), ref(new)))}

    chosen = plan([an_addon("dns", new)], record, {ref(old): found(old, "dns"), ref(new): found(new, "dns")})

    assert [each.ref for each in chosen.prune] == [ref(old)]
    assert chosen.after["dns"].refs == (ref(new),)


def test_an_add_on_that_nobody_wants_any_more_goes_backwards_and_is_forgotten() -> None:
    account, deployment = an_object("one", "ServiceAccount"), an_object("one", "Deployment")
    exists = {ref(each): found(each, "old") for each in (account, deployment)}

    chosen = plan([], {"old": Recorded(digest="1", refs=(ref(account), ref(deployment)))}, exists)

    assert [each.ref.kind for each in chosen.prune] == ["Deployment", "ServiceAccount"]
    assert chosen.after == {}


def test_a_namespace_that_is_no_longer_wanted_stays_and_is_told_until_its_label_goes() -> None:
    space = an_object("shop", "Namespace", "")
    record = {"shop": Recorded(digest="1", refs=(ref(space),))}

    chosen = plan([], record, {ref(space): found(space, "shop")})
    unlabelled = plan([], chosen.after, {ref(space): found(space)})

    assert (chosen.prune, [each.ref for each in chosen.left]) == ((), [ref(space)])
    assert chosen.after["shop"].refs == (ref(space),)
    assert (unlabelled.prune, unlabelled.left, unlabelled.after) == ((), (), {})


def test_an_object_of_somebody_else_keeps_its_content_and_the_way_to_hand_it_over_is_told() -> None:
    theirs = an_object("coredns", data={"Corefile": "theirs"})

    chosen = plan([an_addon("cluster-dns", an_object("coredns"))], {}, {ref(theirs): found(theirs)})

    assert chosen.apply == ()
    assert chosen.left[0].hint.startswith(f"give it the label {LABEL}=cluster-dns")


def test_one_object_under_two_groups_is_not_taken_for_a_leftover() -> None:
    old, new = a_ref("web", "Ingress", "shop", "extensions"), an_object("web", "Ingress", "shop")
    record = {"shop": Recorded(digest="1", refs=(old,))}
    there = found(new, "shop", uid="the same")

    chosen = plan([an_addon("shop", new)], record, {old: there, ref(new): there})

    assert chosen.prune == ()


def test_an_object_that_moved_to_another_add_on_stays() -> None:
    record = {"old": Recorded(digest="1", refs=(a_ref(),))}

    chosen = plan([an_addon("new", an_object())], record, {a_ref(): found(an_object(), "old")})

    assert chosen.prune == ()
    assert [name for name, _ in chosen.apply] == ["new"]


def test_what_is_looked_at_is_what_is_wanted_and_what_was_recorded_once_each() -> None:
    record = {"dns": Recorded(digest="1", refs=(a_ref("one"), a_ref("two")))}

    assert to_look_at([an_addon("dns", an_object("one"))], record) == (a_ref("one"), a_ref("two"))
