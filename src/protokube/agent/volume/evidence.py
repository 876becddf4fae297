"""Gather the evidence about a newly mounted disk, before etcd may start on its data.

Read-only. From the disk: its identity and the position of its log. From the provider: the epoch of its last mount. From
the store: its raft mark. From the other members: their member list and log positions. `members.start` decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from protokube.agent.round import MountedVolume, Round
from protokube.agent.volume import fatal_messages, mounted_volumes, raftmarks
from protokube.errors import Refused, TryLater
from protokube.etcd import Etcd, Status
from protokube.etcd.wal import UnreadableLog
from protokube.members.generation import Accepted, Generation
from protokube.members.identity import Identity
from protokube.members.older_copy import Majority, Older, Voter, majority_without, older_copy
from protokube.members.raftmark import LogPosition, RaftMark
from protokube.members.start_values import Listed

STEP = "volumes"
PATIENCE = 0.4
"""Timeout in seconds for the other members. Live ones answer at once, and a failover must not wait for dead ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence about one disk."""

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
    """TryLater while the provider's epoch is unknown, a proof from etcd's log cannot be recorded, or an older copy
    cannot be judged yet."""
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
    fatal_messages.record(round_, disk, position)  # first: it updates the mark that the disk is compared with
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
    """Identifies an older copy in the record: setting the same copy aside may take several attempts."""
    return f"{disk.volume}: {older}"


def _listed(client: Etcd, member_id: int, answers: Mapping[str, Status]) -> tuple[Listed, ...] | None:
    """The member list of a quorum. Without a leader it is not requested: the request would block until there is one.

    A leader that is named and does not answer has just died with its machine, and the request would block until the
    next election. Most often this disk is the leader's. If the local lists of a majority contain this member, it was
    not replaced by then, which is enough to go on; if they lack it, they may only be behind.
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
    """The local member list of more than half of its voters, not counting this member, if each contains this member."""
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
    """A mark that is missing or cannot be read does not block a start; the skipped check is reported."""
    try:
        mark = raftmarks.read(round_, disk.etcd.key, identity.generation, position)
        why = "there is no raft mark of it"
    except (TryLater, Refused) as error:
        mark, why = None, error.message
    if mark is None:
        round_.report.warn(STEP, f"rollback not checked: {why}", disk.name)
    return mark


def _is_accepted(generation: Generation, disk: MountedVolume, older: Older) -> bool:
    seen = older.disk
    figures = Accepted(epoch=seen.epoch, term=seen.term, commit=seen.commit)
    return generation.accepted.get(disk.volume) == figures
