"""What speaks for and against a disk that was mounted just now, gathered before etcd may see its data.

Everything here reads. The disk: its identity and where its log ends. The provider: the epoch of its last mount. The
store: its raft mark. The other members: what they list, and how far they have come. `members.start` decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from protokube.agent.round import MountedVolume, Round
from protokube.agent.volume import lastwords, mounted_volumes, raftmarks
from protokube.errors import Refused, TryLater
from protokube.etcd import Etcd, Status
from protokube.etcd.wal import UnreadableLog
from protokube.members.generation import Accepted, Generation
from protokube.members.identity import Identity
from protokube.members.older import Majority, Older, Voter, majority_without, older_copy
from protokube.members.raftmark import LogPosition, RaftMark
from protokube.members.start import Listed

STEP = "volumes"
PATIENCE = 0.4
"""Seconds for the other members to answer. Those that live do so at once, and a takeover must not wait for the dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was found out about one disk."""

    position: LogPosition | None = None
    unreadable_log: str = ""
    older: Older | None = None
    majority: Majority | None = None
    members: tuple[Listed, ...] | None = None
    answers_elsewhere: bool = False
    agreed: bool = True
    rejoined: bool = False
    accepted: bool = False


def gather(round_: Round, disk: MountedVolume, generation: Generation | None) -> Evidence:
    """TryLater while the provider does not say which epoch it recorded, what etcd said cannot be recorded, or an older
    copy cannot be judged yet."""
    identity, listed = disk.identity, disk.listed
    assert isinstance(identity, Identity)
    if listed is None:
        raise TryLater("the provider does not answer, so whether this disk is an older copy cannot be checked")
    try:
        position = mounted_volumes.on_volume(
            lambda: round_.edges.logs.position(raftmarks.wal_folder(disk)), f"reading etcd's log on {disk.point}"
        )
    except UnreadableLog as why:
        return Evidence(unreadable_log=str(why))
    lastwords.record(round_, disk, position)  # first: the mark is what the disk is judged by
    client = round_.edges.etcd[disk.etcd.key]
    answers = client.survey(PATIENCE, unlikely=disk.member.name)
    members = _listed(client, position.member_id, answers)
    voters = [each.id for each in members or () if not each.learner]
    mark = _mark(round_, disk, identity, position)
    older = older_copy(identity.epoch, position, listed.epoch_for(identity.generation), mark, identity.generation)
    accepted = generation is not None and older is not None and _is_accepted(generation, disk, older)
    if older is not None and not accepted and not round_.edges.agreement.compared(disk.etcd.key):
        raise TryLater(f"{disk.volume} is an older copy ({older}); the other members are compared before it is judged")
    return Evidence(
        position=position,
        older=older,
        majority=majority_without(position.member_id, voters, {name: _voter(each) for name, each in answers.items()}),
        members=members,
        answers_elsewhere=any(each.member_id == position.member_id for each in answers.values()),
        agreed=not round_.edges.agreement.suspected(disk.etcd.key),
        rejoined=generation is not None
        and generation.rejoined.get(disk.member.short, rejoin_note(disk, older)) != rejoin_note(disk, older),
        accepted=accepted,
    )


def rejoin_note(disk: MountedVolume, older: Older | None) -> str:
    """What the record keeps of an older copy that is set aside: the same copy may be set aside in several attempts."""
    return f"{disk.volume}: {older}"


def _listed(client: Etcd, member_id: int, answers: Mapping[str, Status]) -> tuple[Listed, ...] | None:
    """The member list of a quorum. Without a leader nobody is asked: the question would wait for one.

    A leader that is named and does not answer died with its machine a moment ago, and the question would wait for the
    next one. Most often the disk is its own. If the lists of a majority have this member, it was not replaced by then,
    and that is enough to go on; that they lack it may only mean that they are behind.
    """
    if not any(each.leader for each in answers.values()):
        return None
    try:
        leads = any(each.leader == each.member_id for each in answers.values())
        known = None if leads else _listed_by_majority(client, member_id, answers)
        return known or tuple(client.members())
    except (TryLater, Refused):
        return None


def _listed_by_majority(client: Etcd, member_id: int, answers: Mapping[str, Status]) -> tuple[Listed, ...] | None:
    """The list that more than half of its voters have, this member not asked and yet listed by each of them."""
    others = [name for name, each in answers.items() if each.member_id != member_id]
    lists = {tuple(client.listed_by(name)) for name in others}
    if len(lists) != 1:
        return None
    (found,) = lists
    voters = {each.id for each in found if not each.learner}
    answered = {answers[name].member_id for name in others} & voters
    has_it = any(each.id == member_id for each in found)
    return found if has_it and 2 * len(answered) > len(voters) else None


def _voter(status: Status) -> Voter:
    return Voter(
        member_id=status.member_id,
        cluster_id=status.cluster_id,
        leader=status.leader,
        term=status.raft_term,
        commit=status.raft_index,
        learner=status.learner,
    )


def _mark(round_: Round, disk: MountedVolume, identity: Identity, position: LogPosition) -> RaftMark | None:
    """A mark that is missing or cannot be read stops no start; that it was not compared is reported."""
    try:
        mark = raftmarks.read(round_, disk.etcd.key, identity.generation, position)
        why = "there is no record of how far it had come"
    except (TryLater, Refused) as error:
        mark, why = None, error.message
    if mark is None:
        round_.report.warn(STEP, f"rollback not checked: {why}", disk.name)
    return mark


def _is_accepted(generation: Generation, disk: MountedVolume, older: Older) -> bool:
    seen = older.disk
    figures = Accepted(epoch=seen.epoch, term=seen.term, commit=seen.commit)
    return generation.accepted.get(disk.volume) == figures
