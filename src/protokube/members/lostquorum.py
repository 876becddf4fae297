"""Whether an etcd cluster can come back by itself after volumes are gone. Pure.

Hosts that are down come back, with their disks. A volume that is gone does not: a new one is blank, and its member
joins only with the consent of a quorum. Once fewer members than a quorum have a volume, only a person can help. The
agents and `status` decide it here, in the same words.
"""

from __future__ import annotations

from collections.abc import Mapping

from protokube.errors import Refused


def quorum_of(voters: int) -> int:
    """How many voters have to answer."""
    return voters // 2 + 1


def quorum_lost(key: str, gone: Mapping[str, str], members: int) -> Refused | None:
    """What a person has to know if the volumes that are left make no quorum; None if they do.

    `gone` holds the last recorded volume of each member that has none any more, "" where no record names it.
    """
    left, needed = members - len(gone), quorum_of(members)
    if left >= needed:
        return None
    names = ", ".join(f"{key}/{short}{f' ({volume})' if volume else ''}" for short, volume in sorted(gone.items()))
    return Refused(
        f"gone for good: the volume{'s' if len(gone) > 1 else ''} of {names}; {key} keeps {left} of {members} volumes"
        f" and needs {needed} for a quorum",
        hint="keep every volume that is left; a command that rebuilds the cluster from one of them is not built yet:"
        " docs/limits.md",
    )
