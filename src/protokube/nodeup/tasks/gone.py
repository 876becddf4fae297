"""Paths at which nothing may be. Only files and links are removed; a directory there is not ours."""

from __future__ import annotations

import stat
from collections.abc import Sequence

from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.placing import about, has_draft, kind_of, refuse_kind, remove_draft, remove_name, seen_at
from protokube.nodeup.tasks.file import DRAFT
from protokube.nodeup.values import Gone


def look(wanted: Gone, machine: Machine) -> tuple[Change, ...]:
    path = machine.path(wanted.path)
    try:
        with about(path):
            left = (DRAFT,) if has_draft(path) else ()
            status = seen_at(path)
    except NotADirectoryError:
        return ()  # something above it is a file
    if status is None:
        return left
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        raise refuse_kind(wanted.path, status, "nothing")
    return (Change("path", kind_of(status), "nothing"), *left)


def apply(wanted: Gone, changes: Sequence[Change], machine: Machine, say: Say) -> None:  # noqa: ARG001
    path = machine.path(wanted.path)
    remove_draft(path)
    if (status := seen_at(path)) is None:
        return
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        raise refuse_kind(wanted.path, status, "nothing")
    remove_name(path)
