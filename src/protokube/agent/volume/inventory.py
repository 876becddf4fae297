"""The volumes of this cluster: listed by tags, and looked up by id where the list lacks them.

A list may be stale, partial or empty, and tags get stripped or swapped. So a volume that is mounted here, was last seen
attached here, or is named by the generation record is looked up by id if the list lacks it. It counts as gone only if
the provider answers several times in a row that this id does not exist. The generation record takes precedence over
tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from protokube.agent.cache import Missed, StepCache
from protokube.agent.etcd import generations
from protokube.agent.round import Round
from protokube.agent.volume import mounted_volumes, unused
from protokube.errors import TryLater
from protokube.launch.machine import EtcdCluster, Member
from protokube.providers.volumes import Volume

STEP = "volumes"
TIMES = 3
CONSISTENT_SECONDS, SECONDS = 5.0, 60.0
"""Seconds from the first to the last of those answers; shorter where the provider has read-after-write consistency."""


@dataclass(slots=True)
class InventoryCache(StepCache):
    gone: dict[str, Missed] = field(default_factory=dict)
    """By volume: how long the provider has answered that it does not exist. If lost, the count restarts at zero."""
    held: dict[str, str] = field(default_factory=dict)
    """Volumes that were last seen attached here, or whose attachment was requested, with the etcd cluster of each. If
    lost, those that are mounted or recorded are still looked up."""


def refresh(round_: Round) -> None:
    """Relist all our volumes, sorted by id; drops the previous list first.

    TryLater if the provider does not answer.
    """
    round_.volumes = None
    round_.volumes = _union(round_, round_.edges.volumes.list_volumes())


def complete(round_: Round) -> None:
    """Add the volumes that the record names; the first step of a round does not wait for the store."""
    records_were_known = all(generations.remembered(round_, each.key) for each in round_.wanted.etcd)
    for etcd in round_.wanted.etcd:
        generations.recent(round_, etcd.key)
    if round_.volumes is not None and not records_were_known:
        round_.volumes = _union(round_, round_.volumes)


def _union(round_: Round, listed: Iterable[Volume]) -> Sequence[Volume]:
    recorded, held = _recorded(round_), _held(round_)
    found = {each.id: each for each in listed}
    listed_ids = set(found)
    for volume in sorted({*mounted_volumes.mounted(round_.edges), *recorded, *held} - found.keys()):
        try:
            one = round_.edges.volumes.look_up(volume)
        except TryLater as why:  # it is being created or deleted, or the provider does not answer: unknown
            round_.unclear[volume] = why.message
            continue
        if one is None:
            round_.gone.add(volume)
        else:
            found[volume] = one
    volumes = tuple(_as_recorded(found[each], recorded.get(each)) for each in sorted(found))
    for each in volumes:
        if each.attached_to == round_.edges.me.id:
            held[each.id] = each.etcd_cluster or held.get(each.id, "")
        elif each.id in held and (each.id not in listed_ids or _is_elsewhere(round_, each.id)):
            del held[each.id]
    return volumes


def _is_elsewhere(round_: Round, volume: str) -> bool:
    """Whether a volume that the list shows as not attached here is so: a list may be older than our attachment."""
    if round_.edges.volumes.consistent:
        return True
    try:
        found = round_.edges.volumes.look_up(volume)
    except TryLater:
        return False
    return found is not None and found.attached_to != round_.edges.me.id


def hold(round_: Round, volume: Volume) -> None:
    """Count a volume as attached here, before its attachment is requested: the reply may be lost."""
    _held(round_)[volume.id] = volume.etcd_cluster


def drop(round_: Round, volume: Volume) -> None:
    """The provider replied that it was not attached here."""
    _held(round_).pop(volume.id, None)


def unlisted(round_: Round) -> Iterator[tuple[str, str]]:
    """Volumes that may be attached here although the list does not show it: the etcd cluster of each, and a sentence.

    They were last seen attached here, or their attachment was requested.
    """
    for volume, key in _held(round_).items():
        listed = round_.volume(volume)
        if listed is None:
            unclear = round_.unclear.get(volume, "the provider says that it does not exist")
            yield key, f"{volume} was attached here, and is not listed: {unclear}"
        elif listed.attached_to != round_.edges.me.id:
            yield key, f"the list is old: {volume} was attached here, and is not shown so"
        elif listed.etcd_cluster != key:
            yield key, f"{volume} is attached here, and its tags no longer name {key}"


def _held(round_: Round) -> dict[str, str]:
    return round_.edges.cache.of(InventoryCache).held


def _recorded(round_: Round) -> dict[str, tuple[str, str]]:
    """Volumes that the record assigns to a member: etcd cluster and member, by volume id."""
    places = {}
    for etcd in round_.wanted.etcd:
        record = generations.remembered(round_, etcd.key)
        for member in etcd.members:
            volume = record.volume_of(member.short) if record else ""
            if volume:
                places[volume] = (etcd.key, member.short)
    return places


def _as_recorded(volume: Volume, place: tuple[str, str] | None) -> Volume:
    if place is None or place == (volume.etcd_cluster, volume.member):
        return volume
    return replace(volume, etcd_cluster=place[0], member=place[1], tagged=False)


def count_gone(round_: Round) -> None:
    """Once a round: count how long the provider has answered that a volume does not exist."""
    counts, now = round_.edges.cache.of(InventoryCache).gone, round_.edges.clock.monotonic()
    for volume in counts.keys() - round_.gone:
        del counts[volume]  # one sighting, or one round without a clear answer, restarts the count
    for volume in round_.gone:
        before = counts.get(volume, Missed(0, now))
        counts[volume] = Missed(before.times + 1, before.since)
        if is_gone(round_, volume):
            _held(round_).pop(volume, None)


def is_gone(round_: Round, volume: str) -> bool:
    """Whether the provider has answered often and long enough that this volume does not exist."""
    missed = round_.edges.cache.of(InventoryCache).gone.get(volume)
    if missed is None:
        return False
    enough = CONSISTENT_SECONDS if round_.edges.volumes.consistent else SECONDS
    return missed.times >= TIMES and round_.edges.clock.monotonic() - missed.since >= enough


def volume_of(round_: Round, etcd: EtcdCluster, member: Member) -> Volume | None:
    """A volume of this member that exists and is not superseded."""
    superseded = unused.superseded(round_)
    found = (each for each in round_.volumes or () if (each.etcd_cluster, each.member) == (etcd.key, member.short))
    return next((each for each in found if each.id not in superseded), None)


def member_is_gone(round_: Round, etcd: EtcdCluster, member: Member) -> bool:
    """Whether the member has no volume: none is listed, and the one that the record names does not exist."""
    record = generations.recent(round_, etcd.key)
    recorded = record.volume_of(member.short) if record else ""
    return bool(recorded) and volume_of(round_, etcd, member) is None and is_gone(round_, recorded)


def tag_again(round_: Round, volume: Volume) -> None:
    """Restore the tags of a volume that we hold, if they were stripped or name another member."""
    if volume.tagged or volume.attached_to != round_.edges.me.id:
        return
    etcd = round_.wanted.etcd_cluster(volume.etcd_cluster)
    if etcd is None or etcd.member(volume.member) is None:
        return
    members = tuple(each.short for each in etcd.members)
    round_.edges.volumes.write_tags(replace(volume, members=members, tagged=True))
    round_.report.done(STEP, f"wrote the tags of {volume.id} again", f"{volume.etcd_cluster}/{volume.member}")
