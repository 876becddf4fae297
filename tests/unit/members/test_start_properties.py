"""What holds for whatever an agent may see, sensible or not: nothing is founded, joined or written without proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from hashlib import sha256
from itertools import permutations, product
from typing import TypeVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders.examples import examples
from protokube.members.generation import Generation, is_open
from protokube.members.identity import Identity, Nominated, Unreadable, mismatch
from protokube.members.older_copy import Figures, Majority, Older, why_not_rejoin
from protokube.members.raftmark import LogPosition
from protokube.members.start import decide_start
from protokube.members.start_values import Data, Decision, Join, Kind, Listed, Refuse, Seen, Start, Wait
from unit.members.worlds import (
    AHEAD,
    CLUSTER,
    LATE,
    OLDER,
    POSITION,
    QUORUM,
    a_blank,
    a_generation,
    a_mounted,
    an_identity,
    etcd_name,
    just_mounted,
    peer_url,
)

T = TypeVar("T")
steady = examples(500, derandomize=True)

# Pools of few words, the right ones more often, so that what is drawn often agrees, and often only almost.
TAGS = [
    Nominated(cluster="dev", etcd_cluster=etcd_cluster, member=member, volume=volume)
    for etcd_cluster, member, volume in product(
        ["main", "main", "events"], ["a", "a", "d"], ["vol-a", "vol-a", "vol-a2"]
    )
]
IDENTITIES = [
    Identity(
        cluster=cluster,
        etcd_cluster=etcd_cluster,
        member=member,
        volume=volume,
        generation=generation,
        epoch=1,
        holder="i-1",
    )
    for cluster, etcd_cluster, member, volume, generation in product(
        ["dev", "dev", "prod"], ["main", "events"], ["a", "a", "d"], ["vol-a", "vol-a", "vol-a2"], ["g1", "g1", "g2"]
    )
]
GENERATIONS = [
    Generation(id=named, etcd_cluster=of, token="t", founders=founders, replacements=replacements, open=still)
    for named, of, founders, replacements, still in product(
        ["g1", "g1", "g2"],
        ["main", "main", "events"],
        [{"a": "vol-a", "b": "vol-b"}, {"a": "vol-a", "d": "vol-a2"}, {"a": "vol-a2"}, {}],
        [{}, {"a": "vol-a2"}, {"a": "vol-a", "d": "vol-a"}],
        [True, False],
    )
]
LISTED = [
    Listed(id=number, name=name, peer_urls=(peer_url(member),), client_urls=client_urls, learner=learner)
    for number, (name, member, client_urls, learner) in enumerate(
        product(["etcd-a", "", "etcd-d"], ["a", "a", "d", "b"], [(), ("https://client",)], [False, False, True]),
        start=1,
    )
]
MARKS = ["", "", "", "forming", "forming", "formed", None, "formatting:5f1c", "formatting", "?"]
SIBLINGS: list[tuple[str, ...] | None] = [(), (), None, ("vol-x",)]
LOST: list[tuple[str, ...]] = [(), ("b",), ("b", "c")]
SELDOM = [False, False, False, True]
MEMBERS: list[tuple[Listed, ...] | None] = [
    *[None] * 2 * len(LISTED),
    (),
    *((each,) for each in LISTED),
    *((*QUORUM[1:], each) for each in LISTED),
    *((each, QUORUM[0]) for each in LISTED),
]
POSITIONS: list[LogPosition | None] = [
    POSITION, POSITION, POSITION, None, replace(POSITION, member_id=5), replace(POSITION, cluster_id=CLUSTER + 1)
]  # fmt: skip
OLDERS: list[Older | None] = [
    None, None, None, OLDER, OLDER, replace(OLDER, recorded=Figures(epoch=3, term=6, commit=900))
]  # fmt: skip
MAJORITIES: list[Majority | None] = [
    None, AHEAD, AHEAD, AHEAD, replace(AHEAD, term=3), replace(AHEAD, commit=999),
    replace(AHEAD, cluster_id=CLUSTER + 1),
]  # fmt: skip


def one_of(rolled: int, pool: Sequence[T]) -> tuple[int, T]:
    """What the dice say, and what is left of them: one drawn number is far quicker than ten."""
    rest, chosen = divmod(rolled, len(pool))
    return rest, pool[chosen]


def observed(rolled: int) -> Seen:
    rolled, tags = one_of(rolled, TAGS)
    rolled, any_identity = one_of(rolled, IDENTITIES)
    fitting = [each for each in IDENTITIES if mismatch(each, tags) is None]
    identities: list[Identity | Unreadable | None] = [None, None, None, Unreadable("torn"), any_identity, *fitting[:4]]
    rolled, identity = one_of(rolled, identities)
    rolled, proven_blank = one_of(rolled, [True, True, True, False])
    rolled, data = one_of(rolled, [Data.MISSING, Data.MISSING, Data.MISSING, *Data])
    rolled, generation = one_of(rolled, [None, *GENERATIONS])
    rolled, mark = one_of(rolled, MARKS)
    rolled, siblings = one_of(rolled, SIBLINGS)
    rolled, members = one_of(rolled, MEMBERS)
    rolled, lost = one_of(rolled, LOST)
    rolled, position = one_of(rolled, POSITIONS)
    rolled, older = one_of(rolled, OLDERS)
    rolled, majority = one_of(rolled, MAJORITIES)
    rolled, verified = one_of(rolled, SELDOM)
    rolled, answers_elsewhere = one_of(rolled, SELDOM)
    rolled, rejoined = one_of(rolled, SELDOM)
    rolled, accepted = one_of(rolled, SELDOM)
    rolled, disagreed = one_of(rolled, SELDOM)
    return Seen(
        tags=tags,
        name=etcd_name(tags.member),
        peer_url=peer_url(tags.member),
        identity=identity,
        proven_blank=proven_blank,
        data=data,
        generation=generation,
        mark=mark,
        siblings=siblings,
        members=members,
        lost=lost,
        verified=verified,
        position=position,
        unreadable_log="" if position else "torn",
        older=older,
        majority=majority,
        agreed=not disagreed,
        answers_elsewhere=answers_elsewhere,
        rejoined=rejoined,
        accepted=accepted,
    )


FOUNDING = a_blank(generation=a_generation(is_open=True))
COMING_LATE = a_blank(generation=a_generation(), members=LATE)
REPLACING = a_blank(generation=a_generation(), members=QUORUM)
CRASHED = a_mounted(
    identity=an_identity(), data=Data.MISSING, generation=a_generation(is_open=True), mark="forming", siblings=()
)
EMPTIED = a_mounted(identity=an_identity(), data=Data.MISSING, generation=a_generation(), members=QUORUM)
SERVING = replace(just_mounted(), verified=True)
ORIGINAL = just_mounted(majority=AHEAD)
REJOINING = just_mounted(older=OLDER, majority=AHEAD)
ACCEPTED = just_mounted(older=OLDER, accepted=True)
CLONED = just_mounted(older=OLDER, majority=AHEAD, answers_elsewhere=True)
KEPT_OLD = just_mounted(older=OLDER)
SUPERSEDED = just_mounted(position=replace(POSITION, member_id=5))
REMOVED = just_mounted(members=QUORUM[1:])
SENSIBLE = [
    FOUNDING, COMING_LATE, REPLACING, CRASHED, EMPTIED, SERVING, ORIGINAL, REJOINING, ACCEPTED, CLONED, KEPT_OLD,
    SUPERSEDED, REMOVED,
]  # fmt: skip


def almost(rolled: int, seen: Seen) -> Seen:
    """A sensible observation in which one or two things are as in this one: the cases next to a dangerous yes."""
    rolled, sensible = one_of(rolled, SENSIBLE)
    names = [each.name for each in fields(Seen)]
    rolled, first = one_of(rolled, names)
    rolled, second = one_of(rolled, names)
    changed: Seen = replace(sensible, **{name: getattr(seen, name) for name in (first, second)})
    return changed


def observation(drawn: bytes) -> Seen:
    """Half of them anything at all, half of them almost right."""
    rolled = int.from_bytes(sha256(drawn).digest(), "big")
    seen = observed(rolled >> 64)
    return seen if rolled % 2 else almost(rolled % 2**64 >> 1, seen)


OBSERVATIONS = st.binary(min_size=9, max_size=9).map(observation)


def is_fresh(decision: Decision) -> bool:
    return isinstance(decision, Start) and decision.fresh


def own(seen: Seen) -> Listed | None:
    return next((each for each in seen.members or () if seen.peer_url in each.peer_urls), None)


@given(OBSERVATIONS)
@example(FOUNDING)
@example(COMING_LATE)
@steady
def test_only_founders_of_an_open_generation_or_late_ones_that_never_started_are_fresh(seen: Seen) -> None:
    if not is_fresh(decide_start(seen)):
        return
    generation, late = seen.generation, own(seen)

    assert generation is not None
    assert generation.founders.get(seen.tags.member) == seen.tags.volume
    assert generation.etcd_cluster == seen.tags.etcd_cluster
    assert seen.identity is None or (isinstance(seen.identity, Identity) and seen.identity.generation == generation.id)
    assert is_open(generation, seen.mark) or (
        late is not None
        and not late.started
        and not late.learner
        and bool(late.name)
        and seen.mark is not None
        and seen.mark != "formed"
        and seen.siblings == ()
    )


@given(OBSERVATIONS)
@example(FOUNDING)
@steady
def test_nothing_is_fresh_that_a_quorum_knows_to_have_started(seen: Seen) -> None:
    late = own(seen)
    if seen.members and (late is None or late.started or late.learner):
        assert not is_fresh(decide_start(seen))


@given(OBSERVATIONS)
@example(FOUNDING)
@steady
def test_nothing_is_fresh_where_anything_lies_and_nothing_joins_there_but_an_older_copy(seen: Seen) -> None:
    if seen.data is not Data.MISSING:
        decision = decide_start(seen)
        assert not is_fresh(decision)
        assert not isinstance(decision, Join) or (seen.data is Data.PRESENT and decision.older is not None)


@given(OBSERVATIONS)
@steady
def test_an_identity_that_is_unreadable_or_contradicts_anything_is_always_refused(seen: Seen) -> None:
    match seen.identity:
        case Unreadable():
            refused = True
        case Identity() as identity:
            record = seen.generation
            other = record and record.etcd_cluster == seen.tags.etcd_cluster and record.id != identity.generation
            refused = mismatch(identity, seen.tags) is not None or bool(other)
        case None:
            refused = False
    if refused:
        assert isinstance(decide_start(seen), Refuse)


@given(OBSERVATIONS)
@example(REPLACING)
@steady
def test_nobody_joins_without_the_list_of_a_quorum_or_beside_another_volume(seen: Seen) -> None:
    decision = decide_start(seen)
    if isinstance(decision, Join):
        assert seen.members
        assert seen.siblings == () or decision.older is not None


@given(OBSERVATIONS)
@example(REPLACING)
@steady
def test_a_join_removes_nobody_but_this_member_and_no_learner_that_waits_to_start(seen: Seen) -> None:
    decision = decide_start(seen)
    if isinstance(decision, Join) and decision.remove is not None:
        old = own(seen)
        assert old is not None
        assert decision.remove == old.id
        assert old.started or not old.learner


@given(OBSERVATIONS)
@example(FOUNDING)
@example(REPLACING)
@steady
def test_an_identity_is_written_only_on_a_blank_disk_that_we_made_and_the_provider_calls_untouched(seen: Seen) -> None:
    decision = decide_start(seen)
    if not isinstance(decision, Start | Join):
        return
    if decision.write_identity:
        assert seen.identity is None
        assert seen.proven_blank
        assert seen.data is Data.MISSING
        assert seen.generation is not None
        assert seen.generation.made_by_us(seen.tags.member, seen.tags.volume)
        assert seen.mark is not None
        assert seen.mark == "" or seen.mark.startswith("formatting:")
    else:
        assert isinstance(seen.identity, Identity)


@given(OBSERVATIONS)
@steady
def test_only_a_volume_with_an_identity_of_ours_has_anything_moved_aside(seen: Seen) -> None:
    decision = decide_start(seen)
    if isinstance(decision, Join):
        assert decision.move_aside == isinstance(seen.identity, Identity)


@given(OBSERVATIONS)
@steady
def test_etcd_goes_on_with_data_only_where_there_is_data_and_an_identity(seen: Seen) -> None:
    decision = decide_start(seen)
    if isinstance(decision, Start) and not decision.fresh:
        assert seen.data is Data.PRESENT
        assert isinstance(seen.identity, Identity)
        assert mismatch(seen.identity, seen.tags) is None


@given(OBSERVATIONS)
@example(ORIGINAL)
@example(REJOINING)
@example(ACCEPTED)
@steady
def test_data_that_was_not_verified_is_started_only_if_it_is_no_older_copy_or_a_person_accepted_it(seen: Seen) -> None:
    decision = decide_start(seen)
    if isinstance(decision, Start) and not decision.fresh and not seen.verified:
        assert seen.position is not None
        assert seen.older is None or seen.accepted
        assert decision.accepted == (seen.older is not None)
        assert not seen.answers_elsewhere
        assert not seen.members or any(each.id == seen.position.member_id for each in seen.members)
        assert seen.majority is None or seen.majority.cluster_id == seen.position.cluster_id


@given(OBSERVATIONS)
@example(SERVING)
@steady
def test_verified_data_of_ours_goes_on_whatever_the_evidence(seen: Seen) -> None:
    if not seen.verified or seen.data is not Data.PRESENT or not isinstance(seen.identity, Identity):
        return
    record = seen.generation
    other = record and record.etcd_cluster == seen.tags.etcd_cluster and record.id != seen.identity.generation
    if mismatch(seen.identity, seen.tags) is None and not other:
        assert decide_start(seen) == Start(fresh=False)


@given(OBSERVATIONS)
@example(REJOINING)
@steady
def test_an_older_copy_joins_only_by_proof_once_and_in_a_formed_cluster(seen: Seen) -> None:
    decision = decide_start(seen)
    if not isinstance(decision, Join) or decision.older is None:
        return
    assert decision.older == seen.older
    assert decision.move_aside
    assert seen.position is not None
    assert not seen.accepted
    assert not seen.verified
    assert why_not_rejoin(decision.older, seen.position, seen.majority, agreed=seen.agreed) == ""
    assert not seen.rejoined
    assert seen.generation is not None
    assert not seen.generation.open
    assert seen.generation.etcd_cluster == seen.tags.etcd_cluster
    assert decision.remove == seen.position.member_id


@given(OBSERVATIONS)
@example(CLONED)
@steady
def test_no_member_is_changed_for_a_clone(seen: Seen) -> None:
    decision = decide_start(seen)
    is_clone = isinstance(seen.identity, Identity) and seen.identity.volume != seen.tags.volume
    if is_clone or (isinstance(decision, Refuse) and decision.kind is Kind.CLONE):
        assert isinstance(decision, Refuse)
    if seen.answers_elsewhere and seen.data is Data.PRESENT and not seen.verified:
        assert isinstance(decision, Refuse)


@given(OBSERVATIONS)
@steady
def test_a_provider_that_does_not_answer_never_founds(seen: Seen) -> None:
    if seen.mark is None:
        assert not is_fresh(decide_start(seen))


@given(OBSERVATIONS)
@steady
def test_the_same_observation_is_always_decided_the_same_and_said_in_words(seen: Seen) -> None:
    decision = decide_start(seen)

    assert decide_start(seen) == decision
    if isinstance(decision, Wait | Refuse):
        assert decision.why


@given(st.lists(OBSERVATIONS, min_size=2, max_size=4))
@examples(100, derandomize=True)
def test_a_decision_remembers_nothing_of_those_before_it(several: list[Seen]) -> None:
    forth = [decide_start(seen) for seen in several]
    back = [decide_start(seen) for seen in reversed(several)]

    assert forth == back[::-1]


# Two wiped disks of three, the survivor c away: what real etcd turned into a second cluster in 12 of 12 runs.

ALL_MARKS = [None, "", "formatting:5f1c", "forming", "formed"]
LISTS: list[tuple[str, ...] | None] = [None, ()]


def wiped(member: str) -> list[Seen]:
    """Every way in which the wiped disk of a member may be seen once creation is closed or its record unreadable."""
    blank = [
        a_blank(member=member, volume=f"vol-{member}", generation=generation, mark=mark, siblings=siblings, lost=lost)
        for generation, mark, siblings, lost in product(
            [a_generation(), None], ALL_MARKS, LISTS, [(), ("a",), ("b",), ("a", "b")]
        )
    ]
    only_data_gone = [
        a_mounted(
            member=member,
            identity=an_identity(member),
            data=Data.MISSING,
            generation=generation,
            mark=mark,
            siblings=siblings,
        )
        for generation, mark, siblings in product([a_generation(), None], ALL_MARKS, LISTS)
    ]
    return blank + only_data_gone


def test_two_wiped_disks_found_nothing_while_the_survivor_is_away_in_any_order_of_observations() -> None:
    for left, right in product(wiped("a"), wiped("b")):
        for order in permutations((left, right, left)):
            decisions = [decide_start(seen) for seen in order]
            assert all(isinstance(decision, Wait | Refuse) for decision in decisions), order


@pytest.mark.parametrize("mark", ["forming", "formed", None])
def test_two_wiped_disks_found_nothing_though_the_store_was_never_told_that_creation_is_closed(
    mark: str | None,
) -> None:
    """The marks alone hold: a disk that was once marked, or of which nothing is known, is not a new one."""
    for member in ("a", "b"):
        seen = a_blank(member=member, volume=f"vol-{member}", generation=a_generation(is_open=True), mark=mark)
        assert not is_fresh(decide_start(seen))


@given(OBSERVATIONS)
@steady
def test_without_a_quorum_a_closed_generation_starts_nothing_but_data_that_is_there(seen: Seen) -> None:
    if not seen.members and (seen.generation is None or not seen.generation.open):
        assert not isinstance(decide_start(seen), Join)
        assert not is_fresh(decide_start(seen))


def test_the_random_observations_reach_every_kind_of_decision() -> None:
    """Properties about `fresh` and `Join` say nothing if no draw ever gets there."""
    reached: Counter[str] = Counter()

    @given(OBSERVATIONS)
    @settings(steady, max_examples=500)  # in the fast loop too: fewer do not reach all of them
    def look(seen: Seen) -> None:
        decision = decide_start(seen)
        reached["fresh" if is_fresh(decision) else type(decision).__name__] += 1
        if isinstance(decision, Refuse) and decision.kind is not Kind.OTHER:
            reached[decision.kind.value] += 1
        if isinstance(decision, Join) and decision.older:
            reached["rejoin"] += 1
        if isinstance(decision, Start) and decision.accepted:
            reached["accepted"] += 1

    look()
    kinds = {each.value for each in Kind} - {Kind.OTHER.value, Kind.BROKEN.value}  # that one is decided elsewhere
    assert set(reached) == {"fresh", "Start", "Join", "Wait", "Refuse", "rejoin", "accepted"} | kinds
    assert min(reached.values()) >= 5, reached
