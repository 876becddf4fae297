"""A delay is never taken for a difference, and a difference never for a delay."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from protokube.members.agreement import (
    ALARM_AFTER,
    LOOKS,
    Agree,
    Comparison,
    Disagree,
    Hashed,
    NotComparable,
    Progress,
    Side,
    Suspicion,
    Witness,
    judge,
)
from protokube.members.start_values import Listed
from unit.members.worlds import QUORUM, a_member

steady = examples(200, derandomize=True)


def looks(revision: int = 20, applied: int = 30) -> tuple[Progress, ...]:
    """A member at rest."""
    return (Progress(revision, applied),) * LOOKS


def a_voter(
    name: str,
    *,
    hashed: int | None = 7,
    at: int = 20,
    compacted: int = 5,
    seen: tuple[Progress, ...] = looks(),
    cluster_id: int = 1,
) -> Witness:
    reply = None if hashed is None else Hashed(hash=hashed, revision=at, compacted=compacted)
    return Witness(name=name, cluster_id=cluster_id, members=QUORUM, looks=seen, hashed=reply)


def names(result: Comparison) -> list[tuple[str, ...]]:
    assert isinstance(result, Disagree), result
    return [side.names for side in result.sides]


def test_voters_that_say_the_same_agree() -> None:
    assert judge([a_voter("a"), a_voter("b"), a_voter("c")]) == Agree()


def test_another_hash_of_the_same_revision_is_another_side() -> None:
    result = judge([a_voter("a"), a_voter("b", hashed=8), a_voter("c")])

    assert names(result) == [("a", "c"), ("b",)]
    assert "hash 00000008 at revision 20" in str(result)


def test_another_cluster_id_is_another_side_even_without_hashes() -> None:
    voters = [a_voter("a", hashed=None, cluster_id=2), a_voter("b", hashed=None), a_voter("c", hashed=None)]

    assert names(judge(voters)) == [("b", "c"), ("a",)]


@pytest.mark.parametrize(
    "members",
    [QUORUM[:2], (*QUORUM, a_member("d", 4)), (*QUORUM[:2], a_member("c", 3, learner=True))],
    ids=["one fewer", "one more", "a learner"],
)
def test_another_member_list_is_another_side(members: tuple[Listed, ...]) -> None:
    odd = replace(a_voter("c"), members=members)

    assert names(judge([a_voter("a"), a_voter("b"), odd])) == [("a", "b"), ("c",)]


def test_an_old_member_list_of_a_voter_that_is_behind_is_not_a_wrong_one() -> None:
    behind = replace(a_voter("c", seen=looks(15, 22)), members=QUORUM[:2])

    assert judge([a_voter("a"), a_voter("b"), behind]) == NotComparable("c did not keep up")


def test_a_name_or_a_client_url_that_comes_later_is_no_difference() -> None:
    late = replace(a_voter("c"), members=(*QUORUM[:2], a_member("c", 3, started=False, name="")))

    assert judge([a_voter("a"), a_voter("b"), late]) == Agree()


def test_hashes_after_different_compactions_say_nothing() -> None:
    result = judge([a_voter("a"), a_voter("b"), a_voter("c", hashed=9, compacted=12)])

    assert result == NotComparable("c: no hash after the same compaction")


def test_two_of_three_can_differ_while_the_third_cannot_be_compared() -> None:
    result = judge([a_voter("a"), a_voter("b", hashed=8), a_voter("c", hashed=9, compacted=12)])

    assert isinstance(result, Disagree)
    assert names(result) == [("a",), ("b",)]
    assert result.silent == ("c",)
    assert "not compared: c" in str(result)


def test_sides_that_were_compacted_differently_are_told_apart_by_their_progress() -> None:
    """As on real etcd: two blank members formed a cluster, the survivor came back, and all three are healthy."""
    young = [a_voter(name, at=59, compacted=-1, seen=looks(61, 69)) for name in "ab"]
    survivor = a_voter("c", hashed=9, at=59, compacted=3, seen=looks(59, 69))

    result = judge([*young, survivor])

    assert names(result) == [("a", "b"), ("c",)]
    assert "revision 59 after entry 69" in str(result)


def test_a_voter_that_is_behind_is_silent_and_not_on_another_side() -> None:
    behind = a_voter("c", seen=looks(15, 22))

    assert judge([a_voter("a"), a_voter("b"), behind]) == NotComparable("c did not keep up")


def test_a_voter_that_is_behind_does_not_hide_a_difference_between_the_others() -> None:
    behind = a_voter("c", seen=looks(15, 22))

    assert names(judge([a_voter("a"), a_voter("b", hashed=8), behind])) == [("a", "c"), ("b",)]


def test_a_voter_that_was_restarted_in_between_is_silent() -> None:
    back = (Progress(20, 30), Progress(20, 30), Progress(18, 10), Progress(19, 20))

    assert judge([a_voter("a"), a_voter("b"), a_voter("c", seen=back)]) == NotComparable("c did not keep up")


def test_voters_that_did_not_answer_are_missing_not_different() -> None:
    assert judge([a_voter("a"), a_voter("b")], {"c"}) == NotComparable("c did not answer")
    assert names(judge([a_voter("a"), a_voter("b", hashed=8)], {"c"})) == [("a",), ("b",)]


def test_without_any_hash_nothing_is_said() -> None:
    assert judge([a_voter(name, hashed=None) for name in "abc"]) == NotComparable("no hash could be had")


def test_learners_are_left_out_whatever_they_say() -> None:
    learner = replace(a_voter("d", hashed=99, cluster_id=5), learner=True)

    assert judge([a_voter("a"), a_voter("b"), a_voter("c"), learner]) == Agree()


def test_a_single_voter_agrees_with_itself_and_nobody_says_nothing() -> None:
    assert judge([a_voter("a")]) == Agree()
    assert judge([a_voter("a", hashed=None)]) == Agree()
    assert isinstance(judge([]), NotComparable)
    assert isinstance(judge([], {"a"}), NotComparable)


@pytest.mark.parametrize(
    ("sides", "silent", "majority", "out"),
    [
        (["ab", "c"], "", "ab", "c"),
        (["a", "b"], "c", None, "abc"),
        (["a", "b", "c"], "", None, "abc"),
        (["abc", "de"], "", "abc", "de"),
        (["ab", "cd"], "e", None, "abcde"),
        (["abc", "d"], "e", "abc", "d"),
        (["a", "b"], "", None, "ab"),
    ],
)
def test_the_minority_goes_out_of_service_and_everybody_without_a_majority(
    sides: list[str], silent: str, majority: str | None, out: str
) -> None:
    result = Disagree(sides=tuple(Side(tuple(each), each) for each in sides), silent=tuple(silent))

    assert (result.majority.names if result.majority else None) == (tuple(majority) if majority else None)
    assert result.out_of_service == tuple(out)


SPLIT = Disagree(sides=(Side(("a", "b"), "1"), Side(("c",), "2")))
UNCLEAR = NotComparable("c did not answer")


def fed(*results: Comparison) -> Suspicion:
    state = Suspicion()
    for each in results:
        state = state.feed(each)
    return state


def test_three_differences_in_a_row_are_an_alarm_and_two_are_not() -> None:
    assert fed(SPLIT, SPLIT).alarm is None
    assert fed(SPLIT, SPLIT, SPLIT).alarm == SPLIT


def test_one_agreement_in_between_starts_the_count_again() -> None:
    assert fed(SPLIT, SPLIT, Agree(), SPLIT, SPLIT).alarm is None


def test_a_comparison_that_could_not_be_made_neither_counts_nor_clears() -> None:
    assert fed(SPLIT, UNCLEAR, SPLIT, UNCLEAR).alarm is None
    assert fed(SPLIT, UNCLEAR, SPLIT, UNCLEAR, SPLIT, UNCLEAR).alarm == SPLIT


def test_an_alarm_shows_the_sides_as_they_are_now_and_ends_with_an_agreement() -> None:
    later = Disagree(sides=(Side(("a",), "1"), Side(("b", "c"), "2")))
    alarmed = fed(SPLIT, SPLIT, SPLIT, later)

    assert alarmed.alarm == later
    assert alarmed.feed(Agree()) == Suspicion()


def test_the_alarm_shows_the_comparison_that_heard_the_most() -> None:
    """b is silent in the last one for a moment; that must not cost the majority its service."""
    unsure = Disagree(sides=(Side(("a",), "1"), Side(("c",), "2")), silent=("b",))
    alarm = fed(unsure, SPLIT, unsure).alarm

    assert alarm == SPLIT
    assert alarm.out_of_service == ("c",)


RESULTS = st.lists(st.sampled_from([Agree(), UNCLEAR, SPLIT]), max_size=12)


@given(RESULTS)
@steady
def test_there_is_an_alarm_exactly_if_three_differences_follow_the_last_agreement(results: list[Comparison]) -> None:
    since = results[len(results) - results[::-1].index(Agree()) :] if Agree() in results else results

    assert (fed(*results).alarm is not None) == (since.count(SPLIT) >= ALARM_AFTER)


def healthy(seed: int) -> list[Witness]:
    """One history that every member carries out entry by entry, each as fast as it likes, while we look.

    A look at a member may see its revision before or after its entry moves on; compactions come in anywhere.
    """
    random = Random(seed)
    entries = random.randrange(1, 30)
    revisions = [1]
    for _ in range(entries):
        revisions.append(revisions[-1] + random.randrange(3))
    slow = random.choice([0, 0, entries])
    paths = [
        sorted(random.randint(entries - slow, entries) for _ in range(2 * LOOKS)) for _ in range(random.randint(1, 5))
    ]
    common = min(revisions[path[0]] for path in paths)
    voters = []
    for name, path in zip("abcde", paths, strict=False):
        pairs = [random.sample(path[at : at + 2], 2) for at in range(0, 2 * LOOKS, 2)]
        seen = tuple(Progress(revisions[at_revision], at_entry) for at_revision, at_entry in pairs)
        compacted = random.choice([-1, 3, 3, 3, 3, 3])
        hashed = random.choice([None, *[hash((common, compacted)) % 2**32] * 5])
        voters.append(a_voter(name, hashed=hashed, at=common, compacted=compacted, seen=seen))
    return voters


SEEDS = range(3000)


def test_members_of_one_history_never_disagree_however_they_lag() -> None:
    results = [judge(healthy(seed), random_names(seed)) for seed in SEEDS]
    kinds = Counter(type(each) for each in results)

    assert kinds[Disagree] == 0
    assert min(kinds[Agree], kinds[NotComparable]) > len(SEEDS) / 10


def random_names(seed: int) -> set[str]:
    return set() if seed % 3 else {"x"}


def test_one_other_hash_is_found_wherever_it_can_be_compared() -> None:
    found = 0
    for seed in SEEDS:
        voters = healthy(seed)
        comparable = [each for each in voters if each.hashed and each.hashed.compacted == 3]
        if len(comparable) < 2 or 2 * len(comparable) <= len(voters):
            continue
        odd = Random(seed).choice(comparable)
        assert odd.hashed
        wrong = replace(odd, hashed=replace(odd.hashed, hash=odd.hashed.hash ^ 1))

        result = judge([wrong if each is odd else each for each in voters])

        assert (odd.name,) in names(result)
        found += 1
    assert found > len(SEEDS) / 4


def test_one_other_revision_at_the_same_entry_is_found_among_members_at_rest() -> None:
    for seed in SEEDS:
        random = Random(seed)
        entries, revision = random.randrange(1, 10**6), random.randrange(1, 10**6)
        count = random.randint(2, 5)
        voters = [a_voter(name, hashed=None, seen=looks(revision, entries)) for name in "abcde"[:count]]
        odd = random.randrange(count)
        voters[odd] = replace(voters[odd], looks=looks(revision + random.choice([-1, 1, 10**6]), entries))

        assert ("abcde"[odd],) in names(judge(voters))


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 2)), min_size=2, max_size=5))
@steady
def test_every_voter_is_on_one_side_or_silent_and_the_order_does_not_matter(reports: list[tuple[int, int]]) -> None:
    voters = [a_voter(name, hashed=value, compacted=how) for name, (value, how) in zip("abcde", reports, strict=False)]
    result = judge(voters, {"z"})

    assert judge(voters[::-1], {"z"}) == result
    if isinstance(result, Disagree):
        everybody = [name for side in result.sides for name in side.names] + list(result.silent)
        assert sorted(everybody) == sorted([each.name for each in voters] + ["z"])
        assert len(result.sides) > 1
        assert set(result.out_of_service) <= set(everybody)


@pytest.mark.parametrize(("old", "new"), [*product([2, 59, 500], [3, 60, 900])])
def test_a_lasting_gap_between_revisions_is_a_difference_whatever_its_size(old: int, new: int) -> None:
    voters = [a_voter("a", hashed=None, seen=looks(new, 70)), a_voter("b", hashed=None, seen=looks(old, 70))]

    assert isinstance(judge(voters), Disagree)


# The larger side is not the right one by its size alone.


def an_older_majority(*, applied: int = 72, revision: int = 70) -> list[Witness]:
    """An older copy and a member that missed writes, which formed a quorum."""
    return [a_voter(name, at=70, seen=looks(revision, applied)) for name in "ab"]


def test_a_member_that_carried_out_more_than_the_majority_takes_everybody_out_of_service() -> None:
    """An older copy and one that missed writes formed a quorum; the third alone had the acknowledged write."""
    alone = a_voter("c", hashed=9, at=70, seen=looks(98, 100))

    result = judge([*an_older_majority(), alone])

    assert isinstance(result, Disagree)
    assert (names(result), result.further) == ([("a", "b"), ("c",)], ("c",))
    assert result.out_of_service == ("a", "b", "c")
    assert "c came further than a, b, which may have lost acknowledged writes" in str(result)


def test_more_revisions_after_fewer_entries_on_a_member_that_stands_still_are_evidence_too() -> None:
    alone = a_voter("c", hashed=9, at=70, seen=looks(98, 100))

    result = judge([*an_older_majority(applied=130, revision=80), alone])

    assert isinstance(result, Disagree)
    assert result.out_of_service == ("a", "b", "c")


@pytest.mark.parametrize(
    "seen",
    [
        looks(50, 60),
        looks(70, 72),
        looks(98, 72),
        (Progress(98, 60), Progress(98, 60), Progress(99, 61), Progress(99, 61)),
        (Progress(60, 60), Progress(60, 60), Progress(98, 100), Progress(98, 100)),
    ],
    ids=["behind", "level", "twice carried out", "goes on with them", "came by a moment later"],
)
def test_a_minority_that_came_no_further_leaves_the_majority_in_service(seen: tuple[Progress, ...]) -> None:
    result = judge([*an_older_majority(), a_voter("c", hashed=9, at=70, seen=seen)])

    assert isinstance(result, Disagree)
    assert (result.further, result.out_of_service) == ((), ("c",))


def test_evidence_against_the_majority_stays_when_it_writes_on() -> None:
    evidence = replace(SPLIT, further=("c",))

    assert fed(evidence, SPLIT, SPLIT).alarm == evidence
    assert fed(SPLIT, SPLIT, evidence).alarm == evidence
    assert fed(evidence, Agree(), SPLIT, SPLIT, SPLIT).alarm == SPLIT


PROGRESS = st.builds(Progress, st.integers(0, 200), st.integers(0, 200))


@steady
@given(st.lists(st.tuples(PROGRESS, st.sampled_from([7, 8])), min_size=3, max_size=5))
def test_a_majority_serves_only_if_nobody_outside_of_it_has_carried_out_more(
    held: list[tuple[Progress, int]],
) -> None:
    voters = [a_voter(name, hashed=hash_, seen=(at,) * LOOKS) for name, (at, hash_) in zip("abcde", held, strict=False)]
    result = judge(voters)

    if isinstance(result, Disagree) and result.majority:
        outside = [each for each in voters if each.name not in result.majority.names]
        most = max(each.looks[-1].applied for each in voters if each.name in result.majority.names)
        ahead = any(each.looks[0].applied > most for each in outside)
        everybody = set(result.out_of_service) == {each.name for each in voters}
        assert everybody or not ahead
