"""Prove that the etcd of a member that is to be replaced has stopped, in the same round that acts on it.

A removed manifest link is no proof, nor is elapsed time: a kubelet that hangs stops nothing. A process that still runs
has files of the volume open, or answers under the member's name.
"""

from __future__ import annotations

from protokube.agent.round import MountedVolume, Round
from protokube.errors import Refused, TryLater


def require_unused(round_: Round, disk: MountedVolume) -> None:
    """TryLater while a process on this machine uses the volume, or while that is unknown."""
    if disk.mount is None:
        raise TryLater("it is not known which device its volume is, nor whether its etcd still runs")
    users = round_.edges.disks.used_by(disk.mount.number)
    if users:
        raise TryLater(f"its volume is still in use, so its etcd may run: {'; '.join(users)}")


def require_gone(round_: Round, disk: MountedVolume, old: int) -> None:
    """TryLater while the member with this id may run: here, or where its DNS name points."""
    require_unused(round_, disk)
    try:
        status = round_.edges.etcd[disk.etcd.key].status(disk.member.name)
    except TryLater:
        return
    except Refused as why:  # something answers and refuses us: it may be the member
        raise TryLater(f"what answers as {disk.member.name} cannot be asked for its id: {why.message}") from why
    if status.member_id == old:
        raise TryLater(f"the old id {old:x} still answers as {disk.member.name}; it has to stop first")
    raise TryLater(f"member {status.member_id:x} answers as {disk.member.name}, whose listed id is {old:x}")
