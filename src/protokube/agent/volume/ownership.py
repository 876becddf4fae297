"""What may be started on each mounted volume, and making the volume say so: identity, epoch, marks.

Every mount raises the volume's epoch, first on the disk and then at the provider. Marks and epochs that a tool stripped
at the provider are written again by the holder.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from protokube.agent.etcd import generations, quorum
from protokube.agent.names import member_names
from protokube.agent.volume import inventory, lastwords, mounted_volumes, raftmarks, removals, stopped, unused, verified
from protokube.agent.volume.evidence import Evidence, gather, rejoin_note
from protokube.agent.volume.formatgate import nonce_of
from protokube.agent.wanted import EtcdCluster, Member
from protokube.agent.world import Home, Turn
from protokube.errors import Refused, TryLater
from protokube.members.generation import FORMED, FORMING, Generation, is_untouched
from protokube.members.identity import Identity, Nominated
from protokube.members.older import Older
from protokube.members.start import Data, Decision, Join, Kind, Listed, Refuse, Seen, Start, Wait, decide_start
from protokube.providers.volumes import Volume

STEP = "volumes"


def sync(turn: Turn) -> None:
    for home in list(turn.homes):
        if home.volume in turn.leaving:
            continue
        with turn.reported(STEP, home.name):
            settle(turn, home)


def settle(turn: Turn, home: Home) -> None:
    """Decide, and write down on the volume and at the provider what that means."""
    if beside := beside_another(turn, home.volume, home.etcd.key):
        turn.decisions[home.volume] = beside  # reported where it is prepared
        return
    decision = decide(turn, home)
    if isinstance(decision, Join) and decision.older is not None:
        decision = _set_aside(turn, home, decision.older)
    elif isinstance(decision, Join) and decision.removed is not None:
        decision = removals.set_aside(turn, home, decision.removed)
    turn.decisions[home.volume] = decision
    match decision:
        case Refuse(kind=Kind.SUPERSEDED):
            _record_superseded(turn, home)
            turn.report.warn(STEP, decision.why, home.name, decision.hint)
            return
        case Refuse(why, hint, kind):
            _stop_if_removed(turn, home, kind)
            turn.report.needs_a_person(STEP, why, home.name, hint)
            return
        case Wait(why, kind):
            _stop_if_removed(turn, home, kind)
            turn.waiting(STEP, home.name, why)
            return
        case Start() | Join():
            _own(turn, home, decision)
            turn.settled.add(home.volume)


def _stop_if_removed(turn: Turn, home: Home, kind: Kind) -> None:
    """A mount that served counts as checked; from now on its disk is looked at like one that was mounted just now."""
    if kind is Kind.REMOVED and home.verified:
        verified.forget(turn.world, home.volume)


def _set_aside(turn: Turn, home: Home, older: Older) -> Wait:
    """Keep an older copy's data beside where etcd looks, so that the next round joins its member anew.

    Recorded first: it happens once for each member. The epoch is raised only afterwards, by whichever round joins: a
    crash in between leaves a disk that is checked again, never one that counts as checked with the old data on it.
    """
    stopped.require_unused(turn, home)  # no link leads there, and that is no proof
    note = rejoin_note(home, older)
    generations.change(turn, home.etcd.key, lambda known: known.with_rejoined(home.member.short, note))
    aside = mounted_volumes.on_volume(
        lambda: mounted_volumes.move_data_aside(home), f"moving old data aside on {home.point}"
    )
    if aside:
        turn.report.done(STEP, f"{home.volume} is an older copy ({older}); its data was moved to {aside}", home.name)
    return Wait("its data was an older copy and was set aside; it joins the other members anew")


def beside_another(turn: Turn, volume: str, key: str) -> Refuse | None:
    """Whether another volume of this etcd cluster is the one that is served here."""
    kept = turn.kept.get(key, volume)
    if kept == volume:
        return None
    return Refuse(
        f"{volume} is attached here beside {kept}, and a machine serves one member of {key}",
        f"detach {volume}, and another master takes it",
    )


def _record_superseded(turn: Turn, home: Home) -> None:
    generation = generations.recent(turn, home.etcd.key)
    if generation is not None and home.volume not in generation.superseded:
        generations.change(turn, home.etcd.key, lambda known: known.with_superseded(home.volume, home.member.short))
        turn.report.done(STEP, f"recorded {home.volume} as superseded", home.name)


def decide(turn: Turn, home: Home) -> Decision:
    goes_on = isinstance(home.identity, Identity) and home.data is Data.PRESENT
    others = None if goes_on else _members(turn, home.etcd)
    # An etcd that we started a moment ago may have written its data since we looked, and be in the list by now: looking
    # again after the list was read keeps us from taking a member that lives for one that lost its data.
    data = home.data if goes_on else mounted_volumes.data_on(home)
    corrupt = lastwords.corrupt(turn, home) if goes_on and home.verified else ""
    generation = _record(turn, home) if goes_on else generations.read(turn, home.etcd.key)
    proven = home.identity is None and home.empty and home.listed is not None and _made_by_us(home)
    said = home.listed or home.identity
    assert isinstance(said, Volume | Identity)
    found = Evidence(members=others)
    if goes_on and not home.verified:
        found = gather(turn, home, generation)
    elif goes_on:
        found = removals.of_served(turn, home, generation) or found
    lacking, unrecorded = removals.count(turn, home, data, found, generation)
    if found.older is not None:
        turn.older[home.volume] = found.older
    seen = Seen(
        tags=Nominated(
            cluster=turn.wanted.cluster, etcd_cluster=said.etcd_cluster, member=said.member, volume=home.volume
        ),
        name=home.member.name,
        peer_url=home.member.peer_url,
        identity=home.identity,
        proven_blank=proven,
        data=Data.CORRUPT if corrupt else data,
        corrupt=corrupt,
        generation=generation,
        mark=home.listed.mark if home.listed else None,
        siblings=_siblings(turn, home.etcd, home.member, home.volume),
        members=found.members,
        lost=_lost(turn, home.etcd),
        verified=home.verified,
        position=found.position,
        unreadable_log=found.unreadable_log,
        older=found.older,
        majority=found.majority,
        agreed=found.agreed,
        answers_elsewhere=found.answers_elsewhere,
        rejoined=found.rejoined,
        accepted=found.accepted,
        configured=turn.wanted.etcd_cluster(home.etcd.key) == home.etcd
        and home.etcd.member(home.member.short) is not None,
        lacking=lacking,
        unrecorded=unrecorded,
        now=turn.world.clock.now(),
        rejoin_removed_after=home.etcd.rejoin_removed_after,
    )
    return decide_start(seen)


def _record(turn: Turn, home: Home) -> Generation | None:
    """The record for a member that has its data: read anew while its disk is being checked, if the store answers.

    A copy may have been accepted, or set aside for this member elsewhere, since the record was last read.
    """
    if not home.verified:
        with suppress(TryLater, Refused):
            return generations.read(turn, home.etcd.key)
    return generations.recent(turn, home.etcd.key)


def _made_by_us(home: Home) -> bool:
    """The file system carries the very nonce of the mark: it is ours, and nothing was on it but that."""
    return home.listed is not None and home.uuid is not None and nonce_of(home.listed.mark) == home.uuid


def supposing_blank(turn: Turn, volume: Volume) -> Decision:
    """What could be started here if the volume were proven blank: asked before anything is formatted."""
    etcd = turn.wanted.etcd_cluster(volume.etcd_cluster)
    member = etcd.member(volume.member) if etcd else None
    if etcd is None or member is None:
        return Refuse(f"{volume.id} is tagged for {volume.etcd_cluster}/{volume.member}, which there is not")
    return decide_start(
        Seen(
            tags=Nominated(cluster=turn.wanted.cluster, etcd_cluster=etcd.key, member=member.short, volume=volume.id),
            name=member.name,
            peer_url=member.peer_url,
            identity=None,
            proven_blank=True,
            data=Data.MISSING,
            generation=generations.read(turn, etcd.key),
            mark=volume.mark,
            siblings=_siblings(turn, etcd, member, volume.id),
            members=_members(turn, etcd),
            lost=_lost(turn, etcd),
        )
    )


def _siblings(turn: Turn, etcd: EtcdCluster, member: Member, volume: str) -> tuple[str, ...] | None:
    if turn.volumes is None:
        return None
    same = [each.id for each in turn.volumes if (each.etcd_cluster, each.member) == (etcd.key, member.short)]
    not_used = unused.superseded(turn)
    return tuple(each for each in same if each != volume and each not in not_used)


def _members(turn: Turn, etcd: EtcdCluster) -> tuple[Listed, ...] | None:
    """The others' list, if they have a quorum."""
    try:
        return tuple(quorum.members(turn, etcd))
    except (TryLater, Refused):
        return None


def _lost(turn: Turn, etcd: EtcdCluster) -> tuple[str, ...]:
    return tuple(each.short for each in etcd.members if inventory.member_is_gone(turn, etcd, each))


def _own(turn: Turn, home: Home, decision: Start | Join) -> None:
    """Make identity, epoch and mark say that this master serves this member."""
    world = turn.world
    identity = home.identity
    if identity is None:
        assert decision.write_identity
        generation = generations.read(turn, home.etcd.key)
        assert isinstance(generation, Generation)
        identity = Identity(
            cluster=turn.wanted.cluster, etcd_cluster=home.etcd.key, member=home.member.short, volume=home.volume,
            generation=generation.id, epoch=member_names.published_epoch(turn, home.member.dns_name) + 1,
            holder=world.me.id,
        )  # fmt: skip
        _write(turn, home, identity, f"gave it an identity, epoch {identity.epoch}")
    assert isinstance(identity, Identity)
    if not home.verified and home.identity is not None:  # every mount raises the epoch: older copies lack the last one
        if isinstance(decision, Start) and decision.accepted:
            _reset_mark(turn, home, identity)
        seen = home.listed.epoch_for(identity.generation) if home.listed else 0
        identity = identity.taken_over_by(world.me.id, seen=seen)
        _write(turn, home, identity, f"taken over, epoch {identity.epoch}")
    if home.listed is not None:
        if home.listed.epoch_for(identity.generation) < identity.epoch:
            world.volumes.write_epoch(home.volume, identity.epoch, world.me.id, generation=identity.generation)
        _mark(turn, home)
        inventory.tag_again(turn, home.listed)
    if home.mount is not None:
        verified.note(world, home.volume, home.mount)  # last: what was cut short before is checked again
    turn.homes[turn.homes.index(home)] = replace(home, identity=identity, verified=True)
    _forget_acceptance(turn, home)


def _reset_mark(turn: Turn, home: Home, identity: Identity) -> None:
    """A person accepted this older copy: what was recorded about the newer one no longer counts."""
    position = turn.world.logs.position(raftmarks.wal_folder(home))
    raftmarks.reset(turn, home.etcd.key, identity.generation, position)


def _forget_acceptance(turn: Turn, home: Home) -> None:
    """It was for one use."""
    generation = generations.recent(turn, home.etcd.key)
    if generation is not None and home.volume in generation.accepted:
        generations.change(turn, home.etcd.key, lambda known: known.without_accepted(home.volume))
        turn.report.done(STEP, "started with older data, as a person accepted; that was for one use", home.name)


def _write(turn: Turn, home: Home, identity: Identity, what: str) -> None:
    mounted_volumes.on_volume(
        lambda: mounted_volumes.write_identity(home.point, identity),
        f"writing the identity on {home.point}",
        mounted_volumes.PATIENCE * 5,
    )
    turn.report.done(STEP, what, home.name)


def _mark(turn: Turn, home: Home) -> None:
    """`forming` until the cluster is formed and this member has its data; a mark that a tool took away is put back."""
    assert home.listed is not None
    generation = generations.recent(turn, home.etcd.key)
    formed = generation is not None and not generation.open
    if formed and home.listed.mark != FORMED and _took_part(home):
        turn.world.volumes.write_mark(home.volume, FORMED)
        turn.report.done(STEP, "marked formed", home.name)
    elif is_untouched(home.listed.mark):
        turn.world.volumes.write_mark(home.volume, FORMING)
        turn.report.done(STEP, "marked forming", home.name)


def _took_part(home: Home) -> bool:
    """A founder that comes late has to stay unformed until it has data, or it could never start."""
    return home.data is Data.PRESENT


__all__: Sequence[str] = ["Seen", "decide", "settle", "supposing_blank", "sync"]
