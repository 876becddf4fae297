"""The elected master replaces a lost volume, and only while the other members have a quorum.

Absence from a list is no proof of loss: looked up by the id in the record, the provider must answer several times in a
row that the volume does not exist. The id of the new volume is recorded before any master may format it.
"""

from __future__ import annotations

from dataclasses import replace

from protokube.agent.etcd import generations, quorum
from protokube.agent.names.api_names import living
from protokube.agent.round import Round
from protokube.agent.volume import inventory, unused
from protokube.errors import Refused, TryLater
from protokube.launch.machine import EtcdCluster, Member
from protokube.members.generation import Generation
from protokube.members.lostquorum import quorum_lost
from protokube.providers.volumes import Volume

STEP = "lost"


def sync(round_: Round) -> None:
    if round_.volumes is None:
        return
    for etcd in round_.wanted.etcd:
        for member in etcd.members:
            if inventory.volume_of(round_, etcd, member) is None:
                _one(round_, etcd, member)
            elif round_.edges.presence.elected():
                _record_created(round_, etcd, member)


def _one(round_: Round, etcd: EtcdCluster, member: Member) -> None:
    name = f"{etcd.key}/{member.short}"
    with round_.reported(STEP, name):
        _refuse_superseded(round_, etcd, member, name)
        if not inventory.member_is_gone(round_, etcd, member):
            round_.waiting(STEP, name, _not_proven(round_, etcd, member))
        elif not etcd.replace_lost_volumes:
            raise Refused(
                f"the volume of {name} is gone, and the spec forbids to make a new one",
                hint="restore it, or set replaceLostVolumes: true",
            )
        elif why := _refuse_without_quorum(round_, etcd):
            raise why
        elif round_.edges.presence.live() is None:
            round_.waiting(STEP, name, "its volume is gone, and no quorum is known: nobody can be elected to make one")
        elif not round_.edges.presence.elected():
            round_.waiting(STEP, name, "its volume is gone; the elected master makes a new one")
        else:
            _replace(round_, etcd, member, name)


def _refuse_superseded(round_: Round, etcd: EtcdCluster, member: Member, name: str) -> None:
    """Refuse if the recorded disk exists and is superseded: restored from a copy older than its member's rejoin."""
    record = generations.recent(round_, etcd.key)
    recorded = record.volume_of(member.short) if record else ""
    if (
        record is not None
        and recorded in record.superseded
        and any(each.id == recorded for each in round_.volumes or ())
    ):
        raise Refused(
            f"the only disk of {name} is {recorded}, which is superseded: its member has joined anew since",
            hint=f"restore a newer copy of {recorded}; or delete it, and the agents make a new disk",
        )


def _not_proven(round_: Round, etcd: EtcdCluster, member: Member) -> str:
    """Why a volume that is not listed does not count as gone yet. Absence from a list is no evidence."""
    record = generations.recent(round_, etcd.key)
    if record is None:
        return "no volume is listed for it, and the record that names its volume cannot be read"
    recorded = record.volume_of(member.short)
    if recorded in round_.gone:
        return f"the provider says that {recorded} does not exist; it may come back"
    return (
        f"no volume is listed for it, and the provider does not say whether {recorded} exists: "
        + round_.unclear.get(recorded, "it was not asked yet")
    )


def _refuse_without_quorum(round_: Round, etcd: EtcdCluster) -> Refused | None:
    """The error for a person if the remaining volumes make no quorum, and no member answers."""
    generation = generations.recent(round_, etcd.key)
    gone = {
        each.short: generation.volume_of(each.short) if generation else ""
        for each in etcd.members
        if inventory.member_is_gone(round_, etcd, each)
    }
    lost = quorum_lost(etcd.key, gone, len(etcd.members))
    if lost is None:
        return None
    try:
        quorum.members(round_, etcd)
    except TryLater:
        return lost
    return None  # members may keep running for a moment after their volumes are gone


def _replace(round_: Round, etcd: EtcdCluster, member: Member, name: str) -> None:
    generation = generations.read(round_, etcd.key)
    if generation is None or generation.open:
        raise Refused(
            f"the volume of {name} is gone before the cluster was ever formed", hint="`protokube down` and `up` again"
        )
    quorum.members(round_, etcd)  # raises without a quorum: then nothing is made
    living(round_)
    old = generation.volume_of(member.short)
    made = round_.edges.volumes.create_volume(
        _template(round_, etcd, member), request=f"{generation.id}/{etcd.key}/{member.short}/{old}"
    )
    round_.report.done(STEP, f"made {made.id} in place of {old or 'its lost volume'}", name)
    _record_volume(round_, etcd, member, made.id)


def _template(round_: Round, etcd: EtcdCluster, member: Member) -> Volume:
    sibling = next((each for each in round_.volumes or () if each.etcd_cluster == etcd.key), None)
    members = tuple(each.short for each in etcd.members)
    template = Volume(
        id="", zone=member.zone, etcd_cluster=etcd.key, member=member.short, members=members, size=member.size,
        made_empty=True,
    )  # fmt: skip
    return replace(template, members=sibling.members) if sibling else template


def _record_volume(round_: Round, etcd: EtcdCluster, member: Member, volume: str) -> None:
    generations.change(round_, etcd.key, lambda known: known.with_replacement(member.short, volume))
    round_.report.done(STEP, f"recorded {volume} as the volume of its member", f"{etcd.key}/{member.short}")


def _record_created(round_: Round, etcd: EtcdCluster, member: Member) -> None:
    """Finish after a crash: record a volume that was created at our request and is not in the record yet."""
    not_used = unused.superseded(round_)
    candidates = [
        each for each in round_.volumes or () if _is_volume_of(each, etcd, member) and each.id not in not_used
    ]
    if len(candidates) != 1 or candidates[0].epoch or candidates[0].mark or not candidates[0].made_empty:
        return
    volume = candidates[0]
    generation: Generation | None = generations.recent(round_, etcd.key)
    if generation is None or generation.open or generation.made_by_us(member.short, volume.id):
        return
    if volume.request.startswith(f"{generation.id}/{etcd.key}/{member.short}/"):
        _record_volume(round_, etcd, member, volume.id)


def _is_volume_of(volume: Volume, etcd: EtcdCluster, member: Member) -> bool:
    return (volume.etcd_cluster, volume.member) == (etcd.key, member.short)
