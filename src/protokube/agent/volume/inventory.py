"""Which volumes there are: what the provider lists by tags, and what it says when asked for exactly one id.

A list may be stale, partial or empty, and tags get stripped or swapped. So a volume that a list lacks is asked for by
its id if it is mounted here or named by the generation record. Only the provider's word that this id does not exist
counts as gone, several times running. What the record says of a volume is believed before its tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from protokube.agent.cache import Missed, StepCache
from protokube.agent.etcd import generations
from protokube.agent.volume import mounted_volumes, unused
from protokube.agent.wanted import EtcdCluster, Member
from protokube.agent.world import Turn
from protokube.errors import TryLater
from protokube.providers.volumes import Volume

STEP = "volumes"
TIMES = 3
CONSISTENT_SECONDS, SECONDS = 5.0, 60.0
"""From the first to the last of those answers; shorter where the provider's reads show every earlier write."""


@dataclass(slots=True)
class InventoryCache(StepCache):
    gone: dict[str, Missed] = field(default_factory=dict)
    """By volume: how long the provider has said that there is no such volume. Forgotten, the count starts at zero."""


def refresh(turn: Turn) -> None:
    """List everything that is ours anew, sorted by id; what an earlier list said no longer counts.

    TryLater if the provider does not answer.
    """
    turn.volumes = None
    turn.volumes = _union(turn, turn.world.volumes.list_volumes())


def complete(turn: Turn) -> None:
    """Have what the record names as well; the first step of a round does not wait for the store."""
    records_were_known = all(generations.remembered(turn, each.key) for each in turn.wanted.etcd)
    for etcd in turn.wanted.etcd:
        generations.recent(turn, etcd.key)
    if turn.volumes is not None and not records_were_known:
        turn.volumes = _union(turn, turn.volumes)


def _union(turn: Turn, listed: Iterable[Volume]) -> Sequence[Volume]:
    recorded = _recorded(turn)
    found = {each.id: each for each in listed}
    for volume in sorted({*mounted_volumes.mounted(turn.world), *recorded} - found.keys()):
        try:
            one = turn.world.volumes.look_up(volume)
        except TryLater as why:  # it is being made or deleted, or nobody answers: neither there nor gone
            turn.unclear[volume] = why.message
            continue
        if one is None:
            turn.gone.add(volume)
        else:
            found[volume] = one
    return tuple(_as_recorded(found[each], recorded.get(each)) for each in sorted(found))


def _recorded(turn: Turn) -> dict[str, tuple[str, str]]:
    """Volumes that the record calls the home of a member: etcd cluster and member, by id."""
    places = {}
    for etcd in turn.wanted.etcd:
        record = generations.remembered(turn, etcd.key)
        for member in etcd.members:
            volume = record.home_of(member.short) if record else ""
            if volume:
                places[volume] = (etcd.key, member.short)
    return places


def _as_recorded(volume: Volume, place: tuple[str, str] | None) -> Volume:
    if place is None or place == (volume.etcd_cluster, volume.member):
        return volume
    return replace(volume, etcd_cluster=place[0], member=place[1], tagged=False)


def count_gone(turn: Turn) -> None:
    """Once a round: how long the provider has said of each volume that it does not exist."""
    counts, now = turn.world.memory.of(InventoryCache).gone, turn.world.clock.monotonic()
    for volume in counts.keys() - turn.gone:
        del counts[volume]  # one sighting, or one round without a clear word, starts the count again
    for volume in turn.gone:
        before = counts.get(volume, Missed(0, now))
        counts[volume] = Missed(before.times + 1, before.since)


def is_gone(turn: Turn, volume: str) -> bool:
    """Whether the provider has said often and long enough that this volume does not exist."""
    missed = turn.world.memory.of(InventoryCache).gone.get(volume)
    if missed is None:
        return False
    enough = CONSISTENT_SECONDS if turn.world.volumes.consistent else SECONDS
    return missed.times >= TIMES and turn.world.clock.monotonic() - missed.since >= enough


def volume_of(turn: Turn, etcd: EtcdCluster, member: Member) -> Volume | None:
    """A volume of this member that is there, superseded ones aside."""
    superseded = unused.superseded(turn)
    found = (each for each in turn.volumes or () if (each.etcd_cluster, each.member) == (etcd.key, member.short))
    return next((each for each in found if each.id not in superseded), None)


def member_is_gone(turn: Turn, etcd: EtcdCluster, member: Member) -> bool:
    """Whether the member has no volume: none is listed, and the one that the record names does not exist."""
    record = generations.recent(turn, etcd.key)
    home = record.home_of(member.short) if record else ""
    return bool(home) and volume_of(turn, etcd, member) is None and is_gone(turn, home)


def tag_again(turn: Turn, volume: Volume) -> None:
    """Write the tags of a volume that we hold, where they were stripped or are those of another one."""
    if volume.tagged or volume.attached_to != turn.world.me.id:
        return
    etcd = turn.wanted.etcd_cluster(volume.etcd_cluster)
    if etcd is None or etcd.member(volume.member) is None:
        return
    members = tuple(each.short for each in etcd.members)
    turn.world.volumes.write_tags(replace(volume, members=members, tagged=True))
    turn.report.done(STEP, f"wrote the tags of {volume.id} again", f"{volume.etcd_cluster}/{volume.member}")
