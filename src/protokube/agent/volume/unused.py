"""Volumes that carry a member's tags and do not serve it: superseded ones, and blank replacements not needed yet.

They are neither claimed nor served nor deleted. A machine that holds one detaches it, since it could otherwise not hold
the member's current volume.
"""

from __future__ import annotations

from collections.abc import Mapping

from protokube.agent import links
from protokube.agent.etcd import generations
from protokube.agent.round import Round
from protokube.agent.volume import mounted_volumes, verified
from protokube.errors import TryLater
from protokube.host import Failed, Unmount
from protokube.members.unused import TaggedVolume, spares
from protokube.providers.volumes import Lock, Volume

STEP = "volumes"


def volumes(round_: Round) -> Mapping[str, str]:
    """By id, why each is unused. Computed once a round."""
    if round_.unused is None:
        found = superseded(round_)
        round_.unused = {**dict.fromkeys(found, "superseded by another disk of its member"), **_spare(round_, found)}
    return round_.unused


def superseded(round_: Round) -> set[str]:
    """Listed volumes that the generation record names as superseded."""
    records = {each.key: generations.recent(round_, each.key) for each in round_.wanted.etcd}
    return {
        each.id
        for each in round_.volumes or ()
        if (record := records.get(each.etcd_cluster)) is not None and each.id in record.superseded
    }


def _spare(round_: Round, not_used: set[str]) -> dict[str, str]:
    """Blank volumes of members whose former volume exists (again)."""
    observed = (
        TaggedVolume(each.id, (each.etcd_cluster, each.member), each.epoch, each.mark) for each in round_.volumes or ()
    )
    found = spares(observed, not_used)
    return {spare: f"a blank replacement; {used} is the disk of its member" for spare, used in found.items()}


def give_away(round_: Round, volume: Volume, why: str) -> None:
    """Unmount and detach an unused volume, unless it is served: serving goes on."""
    edges = round_.edges
    mount = mounted_volumes.mounted(edges).get(volume.id)
    name = f"{volume.etcd_cluster}/{volume.member}"
    if mount is not None and links.pointing_into(edges, mount.point):
        round_.report.needs_a_person(
            STEP, f"{volume.id} is served, and should not be: {why}", name, "see `protokube etcd members`"
        )
        return
    if mount is not None:
        result = edges.disks.run(Unmount(point=mount.point, number=mount.number))
        if result is None:
            raise TryLater(f"{volume.id} is being unmounted: {why}")
        if isinstance(result, Failed):
            raise TryLater(f"{volume.id} cannot be unmounted yet: {result.why}")
        verified.forget(edges, volume.id)
    if edges.volumes.lock is Lock.PIN:
        round_.report.warn(STEP, f"{volume.id} is not used: {why}", name)
        return
    edges.volumes.release(volume.id)
    round_.report.done(STEP, f"gave {volume.id} away: {why}", name)
