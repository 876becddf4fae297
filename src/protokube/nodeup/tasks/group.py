"""System groups. One that exists with another id is refused, since files may belong to that id."""

from __future__ import annotations

from collections.abc import Sequence

from protokube.errors import Refused
from protokube.nodeup import accounts
from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.values import Group


def look(wanted: Group, machine: Machine) -> tuple[Change, ...]:
    gid = accounts.gid_of(machine, wanted.name)
    if gid is None:
        return (Change("group", "missing", "any id" if wanted.gid is None else f"id {wanted.gid}"),)
    if wanted.gid is not None and gid != wanted.gid:
        raise Refused(
            f"the group {wanted.name} exists with another id, which is not changed",
            saw=f"id {gid}",
            want=f"id {wanted.gid}",
            hint=f"`groupmod --gid {wanted.gid} {wanted.name}`, then give it its files again",
        )
    return ()


def apply(wanted: Group, changes: Sequence[Change], machine: Machine, say: Say) -> None:  # noqa: ARG001
    with accounts.locked(machine):
        if accounts.find(machine, accounts.GROUP, wanted.name) is None:
            add_group(machine, wanted.name, chosen_gid(machine, wanted.name, wanted.gid))


def chosen_gid(machine: Machine, name: str, gid: int | None, *preferred: int | None) -> int:
    """The id that was asked for, unless somebody has it; else a free one."""
    if gid is None:
        return accounts.free_id(machine, *preferred)
    if (other := accounts.name_of(machine, accounts.GROUP, gid)) is not None:
        raise Refused(f"the id {gid} of the group {name} is taken", saw=f"group {other}", hint="choose another id")
    return gid


def add_group(machine: Machine, name: str, gid: int) -> None:
    """For one who holds the lock. Its shadow comes first: with the group itself it is complete."""
    if accounts.exists(machine, accounts.GSHADOW) and accounts.find(machine, accounts.GSHADOW, name) is None:
        accounts.add(machine, accounts.GSHADOW, (name, "!*", "", ""))
    accounts.add(machine, accounts.GROUP, (name, "x", str(gid), ""))
