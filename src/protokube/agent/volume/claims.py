"""Plan which free volumes this master tries to attach: at most one member of each etcd cluster, `main` before `events`.

Every master runs this code, so several may try one volume in the same second. The provider's attach call is the only
lock, and losing the race is normal. To lose seldom, each master prefers the volume it held last, then its own group's
member, and then the order of a hash that differs from machine to machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from protokube.launch.machine import MasterConfig
from protokube.providers.machines import Machine
from protokube.providers.volumes import AttachmentState, Volume


@dataclass(frozen=True, slots=True)
class ClaimPlan:
    """Volumes to attach, each tried until one of its etcd cluster is ours; and the others, each with the reason.

    `wait` has volumes that would be attached here, but their provider has not detached them yet, or another volume of
    their etcd cluster may still be attached here: attaching one would fail, or be a second attachment.
    """

    attach: tuple[Volume, ...]
    leave: tuple[tuple[Volume, str], ...]
    wait: tuple[tuple[Volume, str], ...] = ()


def plan_claims(
    observed: Sequence[Volume],
    me: Machine,
    wanted: MasterConfig,
    *,
    zonal: bool,
    leaving: Mapping[str, str] | None = None,
    unused: Mapping[str, str] | None = None,
) -> ClaimPlan:
    """Volumes in the order to try them; after the first success, the others of that etcd cluster are skipped.

    `leaving` are the etcd clusters of volumes that this machine still uses, though the list does not show them as
    attached here, each with the reason; "" stands for any.
    `unused` are volumes that serve no member, by id, with the reason.
    """
    held = {each.etcd_cluster for each in observed if each.attached_to == me.id}
    leaving = leaving or {}
    groups = {(etcd.key, member.short): member.group for etcd in wanted.etcd for member in etcd.members}
    attach: list[Volume] = []
    leave: list[tuple[Volume, str]] = []
    wait: list[tuple[Volume, str]] = []
    for volume in sorted(observed, key=lambda each: _order(each, me, groups)):
        why = (unused or {}).get(volume.id) or _why_leave(volume, me, wanted, held, zonal=zonal)
        if why:
            leave.append((volume, why))
        elif still := leaving.get(volume.etcd_cluster) or leaving.get(""):
            wait.append((volume, still))
        elif volume.is_free:
            attach.append(volume)
        else:
            wait.append((volume, volume.between))
    return ClaimPlan(tuple(attach), tuple(leave), tuple(wait))


def _order(volume: Volume, me: Machine, groups: dict[tuple[str, str], str]) -> tuple[bool, str, bool, bool, str]:
    draw = hashlib.sha256(f"{me.id}/{volume.id}".encode()).hexdigest()
    mine = groups.get((volume.etcd_cluster, volume.member)) == me.group
    return (volume.etcd_cluster != "main", volume.etcd_cluster, volume.last_holder != me.id, not mine, draw)


def _why_leave(volume: Volume, me: Machine, wanted: MasterConfig, held: set[str], *, zonal: bool) -> str:
    etcd = wanted.etcd_cluster(volume.etcd_cluster)
    if etcd is None:
        return f"no etcd cluster is called {volume.etcd_cluster!r}"
    if etcd.member(volume.member) is None:
        return f"{volume.etcd_cluster} has no member {volume.member!r}"
    if volume.attached_to == me.id:
        return "already ours"
    if volume.state is AttachmentState.ATTACHING:
        return volume.between
    if volume.attached_to is not None and volume.state is AttachmentState.SETTLED:
        return f"attached to {volume.attached_to}"
    if volume.etcd_cluster in held:
        return f"this machine already holds a member of {volume.etcd_cluster}"
    if zonal and volume.zone != me.zone:
        return f"in zone {volume.zone}, this machine is in {me.zone}"
    return ""
