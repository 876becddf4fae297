"""An original is never taken for an older copy, one that is behind always is, and only proof sets one aside."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from protokube.members.older_copy import Figures, Majority, Older, Voter, majority_without, older_copy, why_not_rejoin
from protokube.members.raftmark import LogPosition, RaftMark
from unit.members.worlds import AHEAD, CLUSTER, OLDER, POSITION

steady = examples(300, derandomize=True)
few = st.integers(0, 4)
counts = st.integers(0, 2**64 - 1) | few
positions = st.builds(
    LogPosition, cluster_id=st.just(CLUSTER), member_id=st.just(1), term=counts, commit=counts, last_index=counts
)


def a_mark(position: LogPosition, *, generation: str = "g1", **changes: Any) -> RaftMark:
    """A mark made exactly where a log ends."""
    mark = RaftMark(
        generation=generation,
        cluster_id=position.cluster_id,
        member_id=position.member_id,
        term=position.term,
        commit=position.commit,
    )
    return replace(mark, **changes)


# older_copy


@given(positions, counts, st.tuples(counts, counts, counts), st.booleans())
@steady
def test_an_original_is_never_called_older(
    position: LogPosition, recorded: int, grown: tuple[int, int, int], is_marked: bool
) -> None:
    """Whatever was recorded of a disk was on it before, and epoch, term and commit only rise."""
    epochs, terms, commits = grown
    mark = a_mark(position) if is_marked else None
    now = replace(position, term=position.term + terms, commit=position.commit + commits)

    assert older_copy(recorded + epochs, now, recorded, mark, "g1") is None


@given(positions, counts, st.tuples(few, few, few).filter(any), st.booleans())
@steady
def test_a_disk_behind_in_epoch_term_or_commit_is_always_called_older(
    position: LogPosition, epoch: int, behind: tuple[int, int, int], has_longer_log: bool
) -> None:
    epochs, terms, commits = behind
    mark = a_mark(position, term=position.term + terms, commit=position.commit + commits)
    if has_longer_log:
        position = replace(position, last_index=2**64 - 1)

    found = older_copy(epoch, position, epoch + epochs, mark, "g1")

    assert found is not None
    assert found.disk == Figures(epoch=epoch, term=position.term, commit=position.commit)
    assert found.recorded == Figures(epoch=epoch + epochs, term=position.term + terms, commit=position.commit + commits)


@given(positions, counts, counts, st.none() | st.tuples(counts, counts), counts)
@steady
def test_the_last_index_of_the_log_is_never_judged_by_term_and_commit(
    position: LogPosition, epoch: int, recorded: int, marked: tuple[int, int] | None, last_index: int
) -> None:
    """An uncommitted tail may be cut by the next leader."""
    mark = a_mark(position, term=marked[0], commit=marked[1]) if marked else None
    shorter = replace(position, last_index=last_index)

    assert older_copy(epoch, shorter, recorded, mark, "g1") == older_copy(epoch, position, recorded, mark, "g1")


@given(positions, counts, counts, st.sampled_from(["generation", "cluster_id", "member_id"]), counts, counts)
@steady
def test_a_mark_of_another_generation_cluster_or_member_says_nothing(
    position: LogPosition, epoch: int, recorded: int, field: str, term: int, commit: int
) -> None:
    mark = a_mark(position, term=term, commit=commit)
    changed: dict[str, Any] = {field: "g2" if field == "generation" else getattr(mark, field) + 1}
    other = replace(mark, **changed)

    assert older_copy(epoch, position, recorded, other, "g1") == older_copy(epoch, position, recorded, None, "g1")


@given(positions, counts, counts, counts, counts)
@steady
def test_what_is_shown_as_recorded_is_never_below_the_disk(
    position: LogPosition, epoch: int, recorded: int, term: int, commit: int
) -> None:
    found = older_copy(epoch, position, recorded, a_mark(position, term=term, commit=commit), "g1")

    if found is not None:
        assert found.recorded.epoch >= found.disk.epoch
        assert found.recorded.term >= found.disk.term
        assert found.recorded.commit >= found.disk.commit
        assert found.recorded != found.disk


@given(positions, counts, counts)
@steady
def test_a_log_that_ends_before_an_acknowledged_index_is_an_older_copy_and_shows_both(
    position: LogPosition, epoch: int, acknowledged: int
) -> None:
    found = older_copy(epoch, position, epoch, a_mark(position, acknowledged=acknowledged), "g1")

    assert (found is not None) == (position.last_index < acknowledged)
    if found is not None:
        assert (found.disk.index, found.recorded.index) == (position.last_index, acknowledged)
        assert (found.disk.term, found.disk.commit) == (found.recorded.term, found.recorded.commit)


@given(positions, st.integers(1, 2**32), few)
@steady
def test_an_epoch_that_was_written_by_mounting_a_copy_says_nothing_about_the_original(
    position: LogPosition, epoch: int, shorter: int
) -> None:
    """The original was not there when its copy got epoch + 1; what the copy lacks, it has."""
    mark = a_mark(position, acknowledged=position.last_index, copied_epoch=epoch + 1)

    assert older_copy(epoch, position, epoch + 1, mark, "g1") is None
    assert older_copy(epoch - 1, position, epoch + 1, mark, "g1") is not None
    assert older_copy(epoch, position, epoch + 2, mark, "g1") is not None
    assert older_copy(epoch, position, epoch + 1, replace(mark, member_id=7), "g1") is not None


def test_others_that_have_not_committed_what_was_acknowledged_are_no_proof() -> None:
    copy = Older(
        disk=Figures(epoch=3, term=4, commit=900, index=910), recorded=Figures(epoch=3, term=4, commit=900, index=950)
    )

    assert "committed less" in why_not_rejoin(copy, POSITION, replace(AHEAD, commit=949), agreed=True)
    assert why_not_rejoin(copy, POSITION, replace(AHEAD, commit=950), agreed=True) == ""
    assert str(copy).endswith("commit 900, log up to 910; recorded are epoch 3, term 4, commit 900, log up to 950")


def test_both_figures_are_said_in_words() -> None:
    assert str(OLDER) == ("the disk has epoch 3, term 4, commit 900; recorded are epoch 5, term 4, commit 1000")


# majority_without

SUSPECT = 1


def following(leader: int, *members: int, term: int = 5, commit: int = 1000) -> dict[str, Voter]:
    return {
        f"etcd-{each}": Voter(member_id=each, cluster_id=CLUSTER, leader=leader, term=term, commit=commit)
        for each in members
    }


@pytest.mark.parametrize(
    ("voters", "answering", "is_majority"),
    [
        ([1], [1], False),
        ([1, 2], [1, 2], False),
        ([1, 2, 3], [1, 2], False),
        ([1, 2, 3], [2, 3], True),
        ([1, 2, 3, 4], [2, 3], False),
        ([1, 2, 3, 4], [2, 3, 4], True),
        ([1, 2, 3, 4, 5], [2, 3], False),
        ([1, 2, 3, 4, 5], [1, 2, 3], False),
        ([1, 2, 3, 4, 5], [2, 3, 4], True),
        ([], [2, 3], False),
    ],
)
def test_more_than_half_of_all_voters_are_needed_and_the_suspect_is_none_of_them(
    voters: list[int], answering: list[int], is_majority: bool
) -> None:
    found = majority_without(SUSPECT, voters, following(2, *answering))

    assert found == (AHEAD if is_majority else None)


def test_the_leader_itself_has_to_be_among_the_answers() -> None:
    voters = [1, 2, 3, 4, 5]

    assert majority_without(SUSPECT, voters, following(2, 3, 4, 5)) is None
    assert majority_without(SUSPECT, voters, following(1, 1, 3, 4, 5)) is None
    assert majority_without(SUSPECT, voters, following(2, 2, 3, 4)) == AHEAD


def test_members_without_a_leader_are_no_majority() -> None:
    assert majority_without(SUSPECT, [1, 2, 3], following(0, 2, 3)) is None


def test_only_those_of_one_term_and_one_cluster_count_together() -> None:
    answers = following(2, 2, 3)
    several: list[dict[str, Any]] = [{"term": 4}, {"cluster_id": CLUSTER + 1}, {"leader": 3}]
    for changes in several:
        changed = {**answers, "etcd-3": replace(answers["etcd-3"], **changes)}
        assert majority_without(SUSPECT, [1, 2, 3], changed) is None


def test_what_is_committed_is_the_word_of_the_leader() -> None:
    answers = {**following(2, 2, commit=700), **following(2, 3, commit=900)}

    assert majority_without(SUSPECT, [1, 2, 3], answers) == replace(AHEAD, commit=700)


ids = st.integers(1, 6)
answers_of = st.dictionaries(
    st.sampled_from([f"etcd-{number}" for number in range(7)]),
    st.builds(
        Voter,
        member_id=ids,
        cluster_id=st.sampled_from([CLUSTER, CLUSTER, CLUSTER + 1]),
        leader=st.sampled_from([0, 1, 2, 2, 2, 3]),
        term=st.sampled_from([5, 5, 5, 6]),
        commit=counts,
        learner=st.sampled_from([False, False, False, True]),
    ),
)


@given(st.lists(ids, unique=True, max_size=6), answers_of)
@steady
def test_a_majority_counts_neither_the_suspect_nor_learners_nor_members_outside_the_list(
    voters: list[int], answers: dict[str, Voter]
) -> None:
    found = majority_without(SUSPECT, voters, answers)
    counted = {
        name: each
        for name, each in answers.items()
        if each.member_id != SUSPECT and each.member_id in voters and not each.learner
    }

    assert found == majority_without(SUSPECT, voters, counted)
    if found is None:
        return
    agree = [each for each in counted.values() if (each.cluster_id, each.term) == (found.cluster_id, found.term)]
    leaders = [each for each in agree if each.leader == each.member_id and each.commit == found.commit]
    assert leaders
    assert any(
        2 * len({each.member_id for each in agree if each.leader == one.member_id}) > len(voters) for one in leaders
    )


# why_not_rejoin


@given(
    st.tuples(few, few, few), st.tuples(few, few, few), st.none() | st.tuples(st.sampled_from([0, 1]), few, few),
    st.booleans(),
)  # fmt: skip
@examples(1000, derandomize=True)
def test_nothing_is_set_aside_that_the_others_may_lack(
    disk: tuple[int, int, int], recorded: tuple[int, int, int], others: tuple[int, int, int] | None, agreed: bool
) -> None:
    copy = Older(
        disk=Figures(epoch=disk[0], term=disk[1], commit=disk[2]),
        recorded=Figures(epoch=recorded[0], term=recorded[1], commit=recorded[2]),
    )
    position = replace(POSITION, term=disk[1], commit=disk[2])
    majority = Majority(cluster_id=CLUSTER + others[0], term=others[1], commit=others[2]) if others else None

    allowed = why_not_rejoin(copy, position, majority, agreed=agreed) == ""

    assert allowed == (
        majority is not None
        and agreed
        and majority.cluster_id == position.cluster_id
        and majority.term >= max(disk[1], recorded[1])
        and majority.commit >= max(disk[2], recorded[2])
    )


def test_the_reason_stays_the_same_while_the_others_figures_change() -> None:
    """A sentence that changed in every round would be reported in every round."""
    reasons = {why_not_rejoin(OLDER, POSITION, replace(AHEAD, commit=commit), agreed=True) for commit in (0, 500, 999)}

    assert len(reasons) == 1
