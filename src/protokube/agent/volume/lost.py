"""A disk that is gone is made anew: by the elected master alone, and only while the others hold a quorum.

"Gone" is never one missing line: asked for the very id that the record names, the provider has to say several times
running that there is no such volume. The id of the new volume goes into the record before anybody may format it.
"""

from __future__ import annotations

from dataclasses import replace

from protokube.agent.etcd import generations, quorum
from protokube.agent.names.api_names import living
from protokube.agent.volume import inventory, unused
from protokube.agent.wanted import EtcdCluster, Member
from protokube.agent.world import Turn
from protokube.errors import Refused, TryLater
from protokube.members.generation import Generation
from protokube.members.lostquorum import quorum_lost
from protokube.providers.volumes import Volume

STEP = "lost"


def sync(turn: Turn) -> None:
    if turn.volumes is None:
        return
    for etcd in turn.wanted.etcd:
        for member in etcd.members:
            if inventory.volume_of(turn, etcd, member) is None:
                _one(turn, etcd, member)
            elif turn.world.presence.elected():
                _record(turn, etcd, member)


def _one(turn: Turn, etcd: EtcdCluster, member: Member) -> None:
    name = f"{etcd.key}/{member.short}"
    with turn.reported(STEP, name):
        _refuse_superseded(turn, etcd, member, name)
        if not inventory.member_is_gone(turn, etcd, member):
            turn.waiting(STEP, name, _not_proven(turn, etcd, member))
        elif not etcd.replace_lost_volumes:
            raise Refused(
                f"the volume of {name} is gone, and the spec forbids to make a new one",
                hint="restore it, or set replaceLostVolumes: true",
            )
        elif why := _no_way_back(turn, etcd):
            raise why
        elif turn.world.presence.live() is None:
            turn.waiting(STEP, name, "its volume is gone, and no quorum is known: nobody can be elected to make one")
        elif not turn.world.presence.elected():
            turn.waiting(STEP, name, "its volume is gone; the elected master makes a new one")
        else:
            _replace(turn, etcd, member, name)


def _refuse_superseded(turn: Turn, etcd: EtcdCluster, member: Member, name: str) -> None:
    """The recorded disk is there and superseded: restored from a copy that was made before its member joined anew."""
    record = generations.recent(turn, etcd.key)
    home = record.home_of(member.short) if record else ""
    if record is not None and home in record.superseded and any(each.id == home for each in turn.volumes or ()):
        raise Refused(
            f"the only disk of {name} is {home}, which is superseded: its member has joined anew since",
            hint=f"restore a newer copy of {home}; or delete it, and the agents make a new disk",
        )


def _not_proven(turn: Turn, etcd: EtcdCluster, member: Member) -> str:
    """Why a volume that is in no list does not count as gone. Absence from a list is no evidence."""
    record = generations.recent(turn, etcd.key)
    if record is None:
        return "no volume is listed for it, and the record that names its volume cannot be read"
    home = record.home_of(member.short)
    if home in turn.gone:
        return f"the provider says that {home} does not exist; it may come back"
    return f"no volume is listed for it, and the provider does not say whether {home} exists: " + turn.unclear.get(
        home, "it was not asked yet"
    )


def _no_way_back(turn: Turn, etcd: EtcdCluster) -> Refused | None:
    """What a person has to know if the volumes that are left make no quorum, and none answers."""
    generation = generations.recent(turn, etcd.key)
    gone = {
        each.short: generation.home_of(each.short) if generation else ""
        for each in etcd.members
        if inventory.member_is_gone(turn, etcd, each)
    }
    lost = quorum_lost(etcd.key, gone, len(etcd.members))
    if lost is None:
        return None
    try:
        quorum.members(turn, etcd)
    except TryLater:
        return lost
    return None  # members may run on for a moment after their volumes went


def _replace(turn: Turn, etcd: EtcdCluster, member: Member, name: str) -> None:
    generation = generations.read(turn, etcd.key)
    if generation is None or generation.open:
        raise Refused(
            f"the volume of {name} is gone before the cluster was ever formed", hint="`protokube down` and `up` again"
        )
    quorum.members(turn, etcd)  # raises without a quorum: then nothing is made
    living(turn)
    old = generation.home_of(member.short)
    made = turn.world.volumes.create_volume(
        _like(turn, etcd, member), request=f"{generation.id}/{etcd.key}/{member.short}/{old}"
    )
    turn.report.done(STEP, f"made {made.id} in place of {old or 'its lost volume'}", name)
    _remember(turn, etcd, member, made.id)


def _like(turn: Turn, etcd: EtcdCluster, member: Member) -> Volume:
    sibling = next((each for each in turn.volumes or () if each.etcd_cluster == etcd.key), None)
    members = tuple(each.short for each in etcd.members)
    told = Volume(
        id="", zone=member.zone, etcd_cluster=etcd.key, member=member.short, members=members, size=member.size,
        made_empty=True,
    )  # fmt: skip
    return replace(told, members=sibling.members) if sibling else told


def _remember(turn: Turn, etcd: EtcdCluster, member: Member, volume: str) -> None:
    generations.change(turn, etcd.key, lambda known: known.with_replacement(member.short, volume))
    turn.report.done(STEP, f"recorded {volume} as the home of its member", f"{etcd.key}/{member.short}")


def _record(turn: Turn, etcd: EtcdCluster, member: Member) -> None:
    """Finish what a crash cut short: a volume that we asked for, made and not yet in the record."""
    not_used = unused.superseded(turn)
    homes = [each for each in turn.volumes or () if _is_home(each, etcd, member) and each.id not in not_used]
    if len(homes) != 1 or homes[0].epoch or homes[0].mark or not homes[0].made_empty:
        return
    volume = homes[0]
    generation: Generation | None = generations.recent(turn, etcd.key)
    if generation is None or generation.open or generation.made_by_us(member.short, volume.id):
        return
    if volume.request.startswith(f"{generation.id}/{etcd.key}/{member.short}/"):
        _remember(turn, etcd, member, volume.id)


def _is_home(volume: Volume, etcd: EtcdCluster, member: Member) -> bool:
    return (volume.etcd_cluster, volume.member) == (etcd.key, member.short)
