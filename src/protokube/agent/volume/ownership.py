"""Decide what may start on each mounted volume, and record our ownership on it: identity, epoch, mark.

Every mount raises the volume's epoch, first on the disk and then at the provider. Marks and epochs that a tool stripped
at the provider are written again by the holder.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from protokube.agent.etcd import generations, quorum
from protokube.agent.names import member_names
from protokube.agent.round import MountedVolume, Round
from protokube.agent.volume import (
    fatal_messages,
    inventory,
    mounted_volumes,
    raftmarks,
    removals,
    stopped,
    unused,
    verified,
)
from protokube.agent.volume.evidence import Evidence, gather, rejoin_note
from protokube.agent.volume.formatgate import nonce_of
from protokube.errors import Refused, TryLater
from protokube.launch.machine import EtcdCluster, Member
from protokube.members.generation import FORMED, FORMING, Generation, is_untouched
from protokube.members.identity import Identity, Nominated
from protokube.members.older_copy import Older
from protokube.members.start import decide_start
from protokube.members.start_values import Data, Decision, Join, Kind, Listed, Refuse, Seen, Start, Wait
from protokube.providers.volumes import Volume

STEP = "volumes"


def sync(round_: Round) -> None:
    for disk in list(round_.mounted):
        if disk.volume in round_.leaving:
            continue
        with round_.reported(STEP, disk.name):
            settle(round_, disk)


def settle(round_: Round, disk: MountedVolume) -> None:
    """Decide, and record the decision on the volume and at the provider."""
    if second := refuse_second_volume(round_, disk.volume, disk.etcd.key):
        round_.decisions[disk.volume] = second  # reported where it is prepared
        return
    decision = decide(round_, disk)
    if isinstance(decision, Join) and decision.older is not None:
        decision = _set_aside(round_, disk, decision.older)
    elif isinstance(decision, Join) and decision.removed is not None:
        decision = removals.set_aside(round_, disk, decision.removed)
    round_.decisions[disk.volume] = decision
    match decision:
        case Refuse(kind=Kind.SUPERSEDED):
            _record_superseded(round_, disk)
            round_.report.warn(STEP, decision.why, disk.name, decision.hint)
            return
        case Refuse(why, hint, kind):
            _stop_if_removed(round_, disk, kind)
            round_.report.needs_a_person(STEP, why, disk.name, hint)
            return
        case Wait(why, kind):
            _stop_if_removed(round_, disk, kind)
            round_.waiting(STEP, disk.name, why)
            return
        case Start() | Join():
            _own(round_, disk, decision)
            round_.settled.add(disk.volume)


def _stop_if_removed(round_: Round, disk: MountedVolume, kind: Kind) -> None:
    """A served mount counts as checked; after a removal its disk must be checked like a newly mounted one."""
    if kind is Kind.REMOVED and disk.verified:
        verified.forget(round_.edges, disk.volume)


def _set_aside(round_: Round, disk: MountedVolume, older: Older) -> Wait:
    """Move an older copy's data out of etcd's data directory, so that the next round rejoins its member.

    Recorded first, since it is allowed once for each member. The epoch is raised only later, by the round that joins: a
    crash in between leaves a disk that is checked again, never one that counts as checked with the old data on it.
    """
    stopped.require_unused(round_, disk)  # a missing manifest link does not prove that etcd has stopped
    note = rejoin_note(disk, older)
    generations.change(round_, disk.etcd.key, lambda known: known.with_rejoined(disk.member.short, note))
    aside = mounted_volumes.on_volume(
        lambda: mounted_volumes.move_data_aside(disk), f"moving old data aside on {disk.point}"
    )
    if aside:
        round_.report.done(STEP, f"{disk.volume} is an older copy ({older}); its data was moved to {aside}", disk.name)
    return Wait("its data was an older copy and was set aside; it joins the other members anew")


def refuse_second_volume(round_: Round, volume: str, key: str) -> Refuse | None:
    """Refuse a volume if another one of the same etcd cluster is served here."""
    kept = round_.kept.get(key, volume)
    if kept == volume:
        return None
    return Refuse(
        f"{volume} is attached here beside {kept}, and a machine serves one member of {key}",
        f"detach {volume}, and another master takes it",
    )


def _record_superseded(round_: Round, disk: MountedVolume) -> None:
    generation = generations.recent(round_, disk.etcd.key)
    if generation is not None and disk.volume not in generation.superseded:
        generations.change(round_, disk.etcd.key, lambda known: known.with_superseded(disk.volume, disk.member.short))
        round_.report.done(STEP, f"recorded {disk.volume} as superseded", disk.name)


def decide(round_: Round, disk: MountedVolume) -> Decision:
    goes_on = isinstance(disk.identity, Identity) and disk.data is Data.PRESENT
    others = None if goes_on else _members(round_, disk.etcd)
    # A newly started etcd may have written its data since the disk was read, and may be in the member list by now:
    # reading the disk again after the list keeps us from treating a live member as one that lost its data.
    data = disk.data if goes_on else mounted_volumes.data_on(disk)
    corrupt = fatal_messages.corrupt(round_, disk) if goes_on and disk.verified else ""
    generation = _record(round_, disk) if goes_on else generations.read(round_, disk.etcd.key)
    proven = disk.identity is None and disk.empty and disk.listed is not None and _made_by_us(disk)
    source = disk.listed or disk.identity
    assert isinstance(source, Volume | Identity)
    found = Evidence(members=others)
    if goes_on and not disk.verified:
        found = gather(round_, disk, generation)
    elif goes_on:
        found = removals.of_served(round_, disk, generation) or found
    lacking, unrecorded = removals.count(round_, disk, data, found, generation)
    if found.older is not None:
        round_.older[disk.volume] = found.older
    seen = Seen(
        tags=Nominated(
            cluster=round_.wanted.cluster, etcd_cluster=source.etcd_cluster, member=source.member, volume=disk.volume
        ),
        name=disk.member.name,
        peer_url=disk.member.peer_url,
        identity=disk.identity,
        proven_blank=proven,
        data=Data.CORRUPT if corrupt else data,
        corrupt=corrupt,
        generation=generation,
        mark=disk.listed.mark if disk.listed else None,
        siblings=_siblings(round_, disk.etcd, disk.member, disk.volume),
        members=found.members,
        lost=_lost(round_, disk.etcd),
        verified=disk.verified,
        position=found.position,
        unreadable_log=found.unreadable_log,
        older=found.older,
        majority=found.majority,
        agreed=found.agreed,
        answers_elsewhere=found.answers_elsewhere,
        rejoined=found.rejoined,
        accepted=found.accepted,
        configured=round_.wanted.etcd_cluster(disk.etcd.key) == disk.etcd
        and disk.etcd.member(disk.member.short) is not None,
        lacking=lacking,
        unrecorded=unrecorded,
        now=round_.edges.clock.now(),
        rejoin_removed_after=disk.etcd.rejoin_removed_after,
    )
    return decide_start(seen)


def _record(round_: Round, disk: MountedVolume) -> Generation | None:
    """The record for a member that has its data: read again while its disk is being checked, if the store answers.

    Since the last read, a copy may have been accepted, or set aside for this member on another machine.
    """
    if not disk.verified:
        with suppress(TryLater, Refused):
            return generations.read(round_, disk.etcd.key)
    return generations.recent(round_, disk.etcd.key)


def _made_by_us(disk: MountedVolume) -> bool:
    """Whether the file system's UUID is the nonce of the mark: then we formatted it, and it was blank before."""
    return disk.listed is not None and disk.uuid is not None and nonce_of(disk.listed.mark) == disk.uuid


def decide_if_blank(round_: Round, volume: Volume) -> Decision:
    """The decision for this volume if it is proven blank: taken before anything is formatted."""
    etcd = round_.wanted.etcd_cluster(volume.etcd_cluster)
    member = etcd.member(volume.member) if etcd else None
    if etcd is None or member is None:
        return Refuse(f"{volume.id} is tagged for {volume.etcd_cluster}/{volume.member}, which does not exist")
    return decide_start(
        Seen(
            tags=Nominated(cluster=round_.wanted.cluster, etcd_cluster=etcd.key, member=member.short, volume=volume.id),
            name=member.name,
            peer_url=member.peer_url,
            identity=None,
            proven_blank=True,
            data=Data.MISSING,
            generation=generations.read(round_, etcd.key),
            mark=volume.mark,
            siblings=_siblings(round_, etcd, member, volume.id),
            members=_members(round_, etcd),
            lost=_lost(round_, etcd),
        )
    )


def _siblings(round_: Round, etcd: EtcdCluster, member: Member, volume: str) -> tuple[str, ...] | None:
    if round_.volumes is None:
        return None
    same = [each.id for each in round_.volumes if (each.etcd_cluster, each.member) == (etcd.key, member.short)]
    not_used = unused.superseded(round_)
    return tuple(each for each in same if each != volume and each not in not_used)


def _members(round_: Round, etcd: EtcdCluster) -> tuple[Listed, ...] | None:
    """The member list, if there is a quorum."""
    try:
        return tuple(quorum.members(round_, etcd))
    except (TryLater, Refused):
        return None


def _lost(round_: Round, etcd: EtcdCluster) -> tuple[str, ...]:
    return tuple(each.short for each in etcd.members if inventory.member_is_gone(round_, etcd, each))


def _own(round_: Round, disk: MountedVolume, decision: Start | Join) -> None:
    """Write identity, epoch and mark: this master serves this member."""
    edges = round_.edges
    identity = disk.identity
    if identity is None:
        assert decision.write_identity
        generation = generations.read(round_, disk.etcd.key)
        assert isinstance(generation, Generation)
        identity = Identity(
            cluster=round_.wanted.cluster, etcd_cluster=disk.etcd.key, member=disk.member.short, volume=disk.volume,
            generation=generation.id, epoch=member_names.published_epoch(round_, disk.member.dns_name) + 1,
            holder=edges.me.id,
        )  # fmt: skip
        _write(round_, disk, identity, f"gave it an identity, epoch {identity.epoch}")
    assert isinstance(identity, Identity)
    if not disk.verified and disk.identity is not None:  # every mount raises the epoch: older copies lack the last one
        if isinstance(decision, Start) and decision.accepted:
            _reset_mark(round_, disk, identity)
        seen = disk.listed.epoch_for(identity.generation) if disk.listed else 0
        identity = identity.taken_over_by(edges.me.id, seen=seen)
        _write(round_, disk, identity, f"taken over, epoch {identity.epoch}")
    if disk.listed is not None:
        if disk.listed.epoch_for(identity.generation) < identity.epoch:
            edges.volumes.write_epoch(disk.volume, identity.epoch, edges.me.id, generation=identity.generation)
        _mark(round_, disk)
        inventory.tag_again(round_, disk.listed)
    if disk.mount is not None:
        verified.note(edges, disk.volume, disk.mount)  # last: after a crash before this, the disk is checked again
    round_.mounted[round_.mounted.index(disk)] = replace(disk, identity=identity, verified=True)
    _forget_acceptance(round_, disk)


def _reset_mark(round_: Round, disk: MountedVolume, identity: Identity) -> None:
    """A person accepted this older copy: lower the raft mark to its position."""
    position = round_.edges.logs.position(raftmarks.wal_folder(disk))
    raftmarks.reset(round_, disk.etcd.key, identity.generation, position)


def _forget_acceptance(round_: Round, disk: MountedVolume) -> None:
    """An acceptance is valid once."""
    generation = generations.recent(round_, disk.etcd.key)
    if generation is not None and disk.volume in generation.accepted:
        generations.change(round_, disk.etcd.key, lambda known: known.without_accepted(disk.volume))
        round_.report.done(STEP, "started with older data, as a person accepted; that was for one use", disk.name)


def _write(round_: Round, disk: MountedVolume, identity: Identity, what: str) -> None:
    mounted_volumes.on_volume(
        lambda: mounted_volumes.write_identity(disk.point, identity),
        f"writing the identity on {disk.point}",
        mounted_volumes.PATIENCE * 5,
    )
    round_.report.done(STEP, what, disk.name)


def _mark(round_: Round, disk: MountedVolume) -> None:
    """Mark `forming` until the cluster is formed and this member has its data, then `formed`; restores a lost mark."""
    assert disk.listed is not None
    generation = generations.recent(round_, disk.etcd.key)
    formed = generation is not None and not generation.open
    if formed and disk.listed.mark != FORMED and _took_part(disk):
        round_.edges.volumes.write_mark(disk.volume, FORMED)
        round_.report.done(STEP, "marked formed", disk.name)
    elif is_untouched(disk.listed.mark):
        round_.edges.volumes.write_mark(disk.volume, FORMING)
        round_.report.done(STEP, "marked forming", disk.name)


def _took_part(disk: MountedVolume) -> bool:
    """A late founding member must stay unformed until it has data, or it could never start."""
    return disk.data is Data.PRESENT
