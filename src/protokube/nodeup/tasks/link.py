"""Symbolic links. A link is replaced atomically; a file or directory in its place is not."""

from __future__ import annotations

import stat
from collections.abc import Sequence

from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.placing import about, has_draft, put_link, refuse_kind, remove_draft, seen_at
from protokube.nodeup.tasks.file import DRAFT
from protokube.nodeup.values import Link


def look(wanted: Link, machine: Machine) -> tuple[Change, ...]:
    path = machine.path(wanted.path)
    with about(path):
        left = (DRAFT,) if has_draft(path) else ()
        status = seen_at(path)
        if status is None:
            return (Change("target", "missing", wanted.target), *left)
        if not stat.S_ISLNK(status.st_mode):
            raise refuse_kind(wanted.path, status, f"a link to {wanted.target}")
        target = str(path.readlink())
    return left if target == wanted.target else (Change("target", target, wanted.target), *left)


def apply(wanted: Link, changes: Sequence[Change], machine: Machine, say: Say) -> None:  # noqa: ARG001
    path = machine.path(wanted.path)
    if tuple(changes) == (DRAFT,):
        remove_draft(path)
        return
    if (status := seen_at(path)) is not None and not stat.S_ISLNK(status.st_mode):
        raise refuse_kind(wanted.path, status, f"a link to {wanted.target}")
    put_link(path, wanted.target)
