"""Volumes that carry a member's tags and are not its home: superseded ones, and blank replacements not needed yet.

They are neither claimed nor served nor deleted. A machine that holds one gives it away, since it could otherwise not
hold the member's real home.
"""

from __future__ import annotations

from collections.abc import Mapping

from protokube.agent import links
from protokube.agent.etcd import generations
from protokube.agent.volume import mounted_volumes, verified
from protokube.agent.world import Turn
from protokube.errors import TryLater
from protokube.host import Failed, Unmount
from protokube.members.unused import TaggedVolume, spares
from protokube.providers.volumes import Lock, Volume

STEP = "volumes"


def volumes(turn: Turn) -> Mapping[str, str]:
    """By id, why each is unused. Read once a round."""
    if turn.unused is None:
        found = superseded(turn)
        turn.unused = {**dict.fromkeys(found, "superseded by another disk of its member"), **_spare(turn, found)}
    return turn.unused


def superseded(turn: Turn) -> set[str]:
    """Listed volumes that the generation record calls superseded."""
    records = {each.key: generations.recent(turn, each.key) for each in turn.wanted.etcd}
    return {
        each.id
        for each in turn.volumes or ()
        if (record := records.get(each.etcd_cluster)) is not None and each.id in record.superseded
    }


def _spare(turn: Turn, not_used: set[str]) -> dict[str, str]:
    """Blank volumes of members whose former volume is there (again)."""
    observed = (
        TaggedVolume(each.id, (each.etcd_cluster, each.member), each.epoch, each.mark) for each in turn.volumes or ()
    )
    found = spares(observed, not_used)
    return {spare: f"a blank replacement; {used} is the disk of its member" for spare, used in found.items()}


def give_away(turn: Turn, volume: Volume, why: str) -> None:
    """Unmount and detach a volume that is unused, unless something on it is being served: that goes on."""
    world = turn.world
    mount = mounted_volumes.mounted(world).get(volume.id)
    name = f"{volume.etcd_cluster}/{volume.member}"
    if mount is not None and links.pointing_into(world, mount.point):
        turn.report.needs_a_person(
            STEP, f"{volume.id} is served, and should not be: {why}", name, "see `protokube etcd members`"
        )
        return
    if mount is not None:
        result = world.disks.run(Unmount(point=mount.point, number=mount.number))
        if result is None:
            raise TryLater(f"{volume.id} is being unmounted: {why}")
        if isinstance(result, Failed):
            raise TryLater(f"{volume.id} cannot be unmounted yet: {result.why}")
        verified.forget(world, volume.id)
    if world.volumes.lock is Lock.PIN:
        turn.report.warn(STEP, f"{volume.id} is not used: {why}", name)
        return
    world.volumes.release(volume.id)
    turn.report.done(STEP, f"gave {volume.id} away: {why}", name)
