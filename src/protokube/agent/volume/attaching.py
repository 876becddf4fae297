"""Attach the free volumes that `claims` plans for this master: at most one of each etcd cluster.

The hard part is a list that is older than our own attachments: a machine that holds two members of one etcd cluster
would take down both when it fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from protokube.agent.round import Round
from protokube.agent.volume import diskfaults, inventory, mounted_volumes, unused
from protokube.agent.volume.claims import plan_claims
from protokube.errors import Refused, TryLater
from protokube.members.identity import Identity
from protokube.providers.volumes import Volume, VolumeTaken

STEP = "volumes"


def claim(round_: Round) -> None:
    """Attach free volumes; an attachment counts only once a fresh list shows it."""
    edges, report = round_.edges, round_.report
    chosen = plan_claims(
        round_.volumes or (),
        edges.me,
        round_.wanted,
        zonal=edges.volumes.zonal,
        leaving={**dict(inventory.unlisted(round_)), **dict(_mounted_unlisted(round_)), **_unmounting(round_)},
        unused=unused.volumes(round_),
    )
    taken: dict[str, Volume] = {}
    for volume in chosen.attach:
        if volume.etcd_cluster in taken:
            continue
        name = f"{volume.etcd_cluster}/{volume.member}"
        try:
            if held := _held_after_all(round_, volume.etcd_cluster):
                round_.waiting(STEP, name, f"the list is old: {held} is attached here, and is not shown so")
                continue
            if why_not := diskfaults.why_leave_to_others(round_, volume):
                round_.waiting(STEP, name, why_not)
                continue
            inventory.hold(round_, volume)
            edges.volumes.attach(volume.id)
        except VolumeTaken as lost:  # every master races for it; losing is normal
            inventory.drop(round_, volume)
            report.done(STEP, f"went to another master ({lost.message})", name)
        except TryLater as why:
            round_.waiting(STEP, name, f"cannot be attached: {why.message}")
            break  # the attach may have succeeded: trying another volume could give us two
        except Refused as why:
            inventory.drop(round_, volume)
            report.needs_a_person(STEP, why, name)
        else:
            taken[volume.etcd_cluster] = volume
    for volume, reason in chosen.wait:
        if volume.etcd_cluster not in taken:
            round_.waiting(STEP, f"{volume.etcd_cluster}/{volume.member}", f"cannot be attached yet: {reason}")
    if taken:
        _look_again(round_, taken.values())


def _look_again(round_: Round, taken: Iterable[Volume]) -> None:
    inventory.refresh(round_)
    for volume in taken:
        name, listed = f"{volume.etcd_cluster}/{volume.member}", round_.volume(volume.id)
        if listed is not None and listed.attached_to == round_.edges.me.id:
            round_.report.done(STEP, f"attached {volume.id}", name)
        else:  # a stale list: the next round lists again
            round_.waiting(STEP, name, f"{volume.id} was attached, and is not listed as ours yet")


def _unmounting(round_: Round) -> dict[str, str]:
    """Etcd clusters of volumes that are being unmounted, each with a sentence; "" where the cluster is unknown."""
    return {key: f"{volume} is being unmounted here" for volume, key in round_.leaving.items()}


def _mounted_unlisted(round_: Round) -> Iterator[tuple[str, str]]:
    """Etcd clusters of volumes that are mounted here but not listed as attached here, each with a sentence.

    "" stands for an unknown etcd cluster.

    The fence keeps them for now. Meanwhile no other volume of that etcd cluster is attached, nor are they attached
    again: the mounted device belongs to an earlier attachment.
    """
    for volume, mount in mounted_volumes.mounted(round_.edges).items():
        listed = round_.volume(volume)
        if listed is None or listed.attached_to != round_.edges.me.id:
            source = listed or mounted_volumes.identity_or_why_not(mount.point)
            key = source.etcd_cluster if isinstance(source, Volume | Identity) else ""
            yield key, f"{volume} is mounted here, and is not listed as attached here"


def _held_after_all(round_: Round, key: str) -> str:
    """A volume of this etcd cluster that is attached here although the list does not show it; "" if there is none.

    Where lists may be stale, each volume is looked up by id before anything is attached.
    """
    if round_.edges.volumes.consistent:
        return ""
    for each in round_.volumes or ():
        if each.etcd_cluster == key:
            found = round_.edges.volumes.look_up(each.id)
            if found is not None and found.attached_to == round_.edges.me.id:
                return each.id
    return ""
