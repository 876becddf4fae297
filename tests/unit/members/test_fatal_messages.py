"""Last words prove something only about the disk, the member and the mount that they are about."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protokube.members.fatal_messages import Ending, FatalMessage, corrupt_message, proof_of_a_copy
from protokube.members.raftmark import LogPosition, RaftMark, is_behind

steady = settings(derandomize=True, deadline=None)
DISK = LogPosition(cluster_id=7, member_id=1, term=2, commit=12, last_index=13)
PROOF = FatalMessage(
    ending=Ending.LACKS_ACKNOWLEDGED, sentence="tocommit(63)", at=100.0, cluster_id=7, member_id=1, acknowledged=63
)
CORRUPT = FatalMessage(ending=Ending.CORRUPT, sentence="walpb: crc mismatch", at=100.0)
small = st.integers(0, 4)
words = st.builds(
    FatalMessage,
    ending=st.sampled_from(Ending),
    sentence=st.just("x"),
    at=st.none() | small.map(float),
    cluster_id=st.none() | small,
    member_id=st.none() | small,
    acknowledged=small,
)
disks = st.builds(LogPosition, cluster_id=small, member_id=small, term=small, commit=small, last_index=small)


def test_a_panic_since_the_mount_was_checked_proves_that_the_disk_is_a_copy() -> None:
    assert proof_of_a_copy([PROOF], DISK, 99.0) == PROOF


@pytest.mark.parametrize(
    "other",
    [
        replace(PROOF, at=98.9),
        replace(PROOF, at=None),
        replace(PROOF, cluster_id=8),
        replace(PROOF, member_id=2),
        replace(PROOF, acknowledged=13),
        replace(PROOF, ending=Ending.REMOVED),
        CORRUPT,
    ],
    ids=["before", "no time", "another cluster", "another member", "the disk has it", "removed", "corrupt"],
)
def test_words_of_another_life_or_member_prove_nothing(other: FatalMessage) -> None:
    assert proof_of_a_copy([other], DISK, 99.0) is None


def test_a_member_that_caught_up_since_is_left_alone() -> None:
    assert proof_of_a_copy([PROOF], replace(DISK, last_index=63), 99.0) is None


@given(st.lists(words, max_size=6), disks, small)
@steady
def test_what_is_proven_is_an_older_copy_once_it_is_recorded_and_the_original_is_none(
    spoken: list[FatalMessage], disk: LogPosition, since: int
) -> None:
    proof = proof_of_a_copy(spoken, disk, float(since))

    if proof is None:
        return
    mark = RaftMark(
        generation="g", cluster_id=disk.cluster_id, member_id=disk.member_id, term=0, commit=0,
        acknowledged=proof.acknowledged,
    )  # fmt: skip
    assert is_behind(disk, mark, "g")
    assert not is_behind(replace(disk, last_index=proof.acknowledged), mark, "g")
    assert proof.at is not None
    assert proof.at >= since


@given(st.lists(words, max_size=6), disks, small)
@steady
def test_a_disk_that_has_all_that_was_ever_acknowledged_is_never_stopped(
    spoken: list[FatalMessage], disk: LogPosition, since: int
) -> None:
    whole = replace(disk, last_index=max([each.acknowledged for each in spoken], default=0))

    assert proof_of_a_copy(spoken, whole, float(since)) is None


def test_corrupt_is_what_etcd_said_last_and_since_the_mount_was_checked() -> None:
    assert corrupt_message([PROOF, CORRUPT], 99.0) == CORRUPT
    assert corrupt_message([CORRUPT, PROOF], 99.0) is None
    assert corrupt_message([CORRUPT], 100.1) is None
    assert corrupt_message([replace(CORRUPT, at=None)], 0.0) is None
    assert corrupt_message([], 0.0) is None
