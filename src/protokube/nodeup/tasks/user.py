"""System users without a password. One that exists with other values is refused: it may be somebody else's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from protokube.errors import Refused
from protokube.nodeup import accounts
from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.tasks.group import add_group, chosen_gid
from protokube.nodeup.values import User

FIELDS = 7


def look(wanted: User, machine: Machine) -> tuple[Change, ...]:
    fields = accounts.user(machine, wanted.name)
    if fields is None:
        return (Change("user", "missing", "any id" if wanted.uid is None else f"id {wanted.uid}"),)
    if len(fields) != FIELDS:
        raise Refused(f"the entry of {wanted.name} in {accounts.PASSWD} is none", hint="`pwck` repairs it")
    if differs := tuple(_differs(wanted, fields, machine)):
        raise Refused(
            f"the user {wanted.name} exists with other values, which are not changed",
            saw=", ".join(f"{change.what} {change.saw}" for change in differs),
            want=", ".join(f"{change.what} {change.want}" for change in differs),
            hint="change it with `usermod`, or remove it if nobody needs it",
        )
    return ()


def _differs(wanted: User, fields: Sequence[str], machine: Machine) -> Iterator[Change]:
    _, _, uid, gid, _, home, shell = fields
    if wanted.uid is not None and uid != str(wanted.uid):
        yield Change("id", uid, str(wanted.uid))
    if wanted.group and gid != str(accounts.gid_of(machine, wanted.group)):
        number = accounts.number(accounts.PASSWD, fields, place=3)
        yield Change("group", accounts.name_of(machine, accounts.GROUP, number) or gid, wanted.group)
    if home != wanted.home:
        yield Change("home", home, wanted.home)
    if shell != wanted.shell:
        yield Change("shell", shell, wanted.shell)


def apply(wanted: User, changes: Sequence[Change], machine: Machine, say: Say) -> None:  # noqa: ARG001
    """Without a group of another name, it gets one of its own. Its home is not made: that is a Directory task."""
    with accounts.locked(machine):
        if accounts.find(machine, accounts.PASSWD, wanted.name) is not None:
            return
        group = wanted.group or wanted.name
        gid = accounts.gid_of(machine, group)
        if gid is None and wanted.group:
            raise Refused(f"there is no group {group} on this machine", hint="a Group task or a package makes it")
        if wanted.uid is not None and (other := accounts.name_of(machine, accounts.PASSWD, wanted.uid)) is not None:
            raise Refused(
                f"the id {wanted.uid} of the user {wanted.name} is taken", saw=f"user {other}", hint="choose another id"
            )
        if gid is None:
            gid = chosen_gid(machine, group, None, wanted.uid)
            add_group(machine, group, gid)
        uid = wanted.uid if wanted.uid is not None else _uid_beside(machine, gid)
        if accounts.exists(machine, accounts.SHADOW) and accounts.find(machine, accounts.SHADOW, wanted.name) is None:
            accounts.add(machine, accounts.SHADOW, (wanted.name, "!*", "", "", "", "", "", "", ""))
        entry = (wanted.name, "x", str(uid), str(gid), "", wanted.home, wanted.shell)
        accounts.add(machine, accounts.PASSWD, entry)


def _uid_beside(machine: Machine, gid: int) -> int:
    """The number of its group where that is free: so a run that goes on after a kill chooses the same."""
    if gid in accounts.SYSTEM_IDS and accounts.name_of(machine, accounts.PASSWD, gid) is None:
        return gid
    return accounts.free_id(machine)
