"""Decide whether an etcd cluster can recover without a person after volumes were lost. Pure.

Hosts that are down come back, with their disks. A lost volume does not: its replacement is blank, and its member can
join only with the consent of a quorum. Once fewer members than a quorum have a volume, a person has to act. The agents
and `status` share this function and its message.
"""

from __future__ import annotations

from collections.abc import Mapping

from protokube.errors import Refused


def quorum_of(voters: int) -> int:
    """How many voters have to answer."""
    return voters // 2 + 1


def quorum_lost(key: str, gone: Mapping[str, str], members: int) -> Refused | None:
    """The error to report if the remaining volumes make no quorum; None if they do.

    `gone` maps each member without a volume to its last recorded volume, "" where no record names one.
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
