"""Whether the etcd of a member that is to be replaced is gone: proven from the machine, in the very round that acts.

A link that was taken away is no proof, nor is time: a kubelet that hangs stops nothing. A process that runs on has
files of the volume open, or answers under the member's own name.
"""

from __future__ import annotations

from protokube.agent.world import Home, Turn
from protokube.errors import Refused, TryLater


def require_unused(turn: Turn, home: Home) -> None:
    """TryLater while a process on this machine uses the volume, or while that cannot be told."""
    if home.mount is None:
        raise TryLater("it is not known which device its volume is, so nobody can tell whether its etcd still runs")
    users = turn.world.disks.used_by(home.mount.number)
    if users:
        raise TryLater(f"its volume is still in use, so its etcd may run: {'; '.join(users)}")


def require_gone(turn: Turn, home: Home, old: int) -> None:
    """TryLater while the member with this id may run: here, or wherever its name leads."""
    require_unused(turn, home)
    try:
        status = turn.world.etcd[home.etcd.key].status(home.member.name)
    except TryLater:
        return
    except Refused as why:  # something is there that does not let us in: it may be the member
        raise TryLater(f"what answers as {home.member.name} cannot be asked for its id: {why.message}") from why
    if status.member_id == old:
        raise TryLater(f"the old id {old:x} still answers as {home.member.name}; it has to stop first")
    raise TryLater(f"member {status.member_id:x} answers as {home.member.name}, whose listed id is {old:x}")
