"""Decide whether a disk is an older copy of itself, before etcd starts on its data. Pure.

A restored snapshot has the right identity but lacks what its member has acknowledged since. Two records are kept off
the disk: the epoch of its last mount, written after the one on the disk, and the raft mark, written only after the log
was flushed. So the current disk is never behind either of them, and a disk that is behind one is an older copy. The
mark may also have an index that raft has shown to be missing from a disk, see `members.fatal_messages`.

The hard part is to recover without a person. The copy may be set aside only if a majority of all voters, this member
not counted, proves that it has everything that the disk or the records know of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from protokube.members.raftmark import LogPosition, RaftMark, belongs_to, is_behind, lacks_acknowledged


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How far a member has progressed, according to a disk or a record."""

    epoch: int
    term: int
    commit: int
    index: int = 0
    """The last index of the log, or the acknowledged index; 0 where it was not compared."""

    def __str__(self) -> str:
        index = f", log up to {self.index}" if self.index else ""
        return f"epoch {self.epoch}, term {self.term}, commit {self.commit}{index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Older:
    """The disk is behind what was recorded about it."""

    disk: Figures
    recorded: Figures

    def __str__(self) -> str:
        return f"the disk has {self.disk}; recorded are {self.recorded}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """One member's reply about the raft group."""

    member_id: int
    cluster_id: int
    leader: int
    """The id of the leader it follows; 0 for none."""
    term: int
    commit: int
    learner: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Majority:
    """A leader that a majority of all voters follows, without counting one of them."""

    cluster_id: int
    term: int
    commit: int


def older_copy(
    epoch: int, position: LogPosition, recorded_epoch: int, mark: RaftMark | None, generation: str
) -> Older | None:
    """How a disk is behind its records; None if it is not. A missing record proves nothing.

    The last index of the log is compared with an acknowledged index only: the next leader may truncate an uncommitted
    tail. An epoch that was written by mounting a copy does not count against the current disk, which has the epoch
    before it.
    """
    if mark is not None and belongs_to(mark, position, generation) and 0 < mark.copied_epoch == recorded_epoch:
        recorded_epoch -= 1
    behind_mark = is_behind(position, mark, generation)
    if epoch >= recorded_epoch and not behind_mark:
        return None
    lacks = lacks_acknowledged(position, mark, generation)
    disk = Figures(epoch=epoch, term=position.term, commit=position.commit, index=position.last_index if lacks else 0)
    known = mark if behind_mark else None
    term, commit = (known.term, known.commit) if known else (position.term, position.commit)
    recorded = Figures(
        epoch=max(epoch, recorded_epoch),
        term=max(term, disk.term),
        commit=max(commit, disk.commit),
        index=mark.acknowledged if mark is not None and lacks else 0,
    )
    return Older(disk=disk, recorded=recorded)


def majority_without(suspect: int, voters: Sequence[int], answers: Mapping[str, Voter]) -> Majority | None:
    """The leader that more than half of `voters` follow in one term, the suspect's own answer not counted.

    `voters` are the ids of all voters, including the suspect. The leader itself has to answer: only it knows the commit
    index.
    """
    others = [each for each in answers.values() if each.member_id != suspect and each.member_id in voters]
    for leader in others:
        if leader.leader != leader.member_id or leader.learner:
            continue
        followers = {
            each.member_id
            for each in others
            if (each.cluster_id, each.leader, each.term) == (leader.cluster_id, leader.member_id, leader.term)
            and not each.learner
        }
        if 2 * len(followers) > len(set(voters)):
            return Majority(cluster_id=leader.cluster_id, term=leader.term, commit=leader.commit)
    return None


def why_not_rejoin(copy: Older, position: LogPosition, majority: Majority | None, *, agreed: bool) -> str:
    """Why an older copy may not be set aside so that its member rejoins; "" if it may.

    The reasons contain no figures that change over time: the same cause gives the same text in every round.
    """
    if majority is None:
        return "no majority of the other voters has a leader that could be asked"
    if majority.cluster_id != position.cluster_id:
        return "the other members are of another etcd cluster"
    if majority.term < max(copy.disk.term, copy.recorded.term):
        return "the others' leader is of an earlier term than this disk or its records"
    if majority.commit < max(copy.disk.commit, copy.recorded.commit, copy.recorded.index):
        return "the others have committed less than this disk or its records: it may hold the newest data"
    if not agreed:
        return "the other members do not agree with each other"
    return ""
