"""Directories with exact mode and owner. What is in them is not touched."""

from __future__ import annotations

import stat
from collections.abc import Sequence

from protokube.errors import Refused
from protokube.nodeup import accounts
from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.placing import Rights, about, put_directory, refuse_kind, seen_at
from protokube.nodeup.values import Directory


def look(wanted: Directory, machine: Machine) -> tuple[Change, ...]:
    """A link to a directory counts as one: people move large directories to other disks. It is never changed."""
    path = machine.path(wanted.path)
    with about(path):
        status = seen_at(path)
    if status is None:
        return (Change("directory", "missing", f"{wanted.mode:#o} {wanted.owner}:{wanted.group}"),)
    if stat.S_ISLNK(status.st_mode):
        return _behind_link(wanted, machine)
    if not stat.S_ISDIR(status.st_mode):
        raise refuse_kind(wanted.path, status, "a directory")
    return accounts.rights_differ(status, wanted.mode, wanted.owner, wanted.group, machine)


def _behind_link(wanted: Directory, machine: Machine) -> tuple[Change, ...]:
    target = machine.resolved(wanted.path)
    with about(target):
        status = seen_at(target)
    if status is None or not stat.S_ISDIR(status.st_mode):
        raise Refused(
            f"{wanted.path} is a link that leads to no directory",
            saw=str(machine.path(wanted.path).readlink()),
            want="a directory",
            hint="make the directory that it leads to, or remove the link",
        )
    if differs := accounts.rights_differ(status, wanted.mode, wanted.owner, wanted.group, machine):
        raise Refused(
            f"{wanted.path} is a link to {target}, which has other rights and is not changed",
            saw=", ".join(f"{change.what} {change.saw}" for change in differs),
            want=", ".join(f"{change.what} {change.want}" for change in differs),
            hint="change it with chmod and chown, or remove the link",
        )
    return ()


def apply(wanted: Directory, changes: Sequence[Change], machine: Machine, say: Say) -> None:  # noqa: ARG001
    uid, gid = accounts.ids(machine, wanted.owner, wanted.group)
    put_directory(machine.path(wanted.path), Rights(wanted.mode, uid, gid))
