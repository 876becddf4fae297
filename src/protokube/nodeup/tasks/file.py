"""Files with exact content, mode and owner. What a secret file holds is never shown, and what it held neither."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

from protokube.nodeup import accounts
from protokube.nodeup.changes import HIDDEN, Change
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.placing import (
    Rights,
    about,
    has_draft,
    put_file,
    refuse_kind,
    remove_draft,
    seen_at,
)
from protokube.nodeup.values import File

DRAFT = Change("draft", "left by a run that was killed", "none")


def look(wanted: File, machine: Machine) -> tuple[Change, ...]:
    path = machine.path(wanted.path)
    with about(path):
        return _look(wanted, path, machine)


def _look(wanted: File, path: Path, machine: Machine) -> tuple[Change, ...]:
    left = (DRAFT,) if has_draft(path) else ()
    status = seen_at(path)
    if status is None:
        return (Change("content", "missing", described(wanted)), *left)
    if stat.S_ISLNK(status.st_mode):
        if wanted.keep:
            return left
        return (Change("content", f"a link to {path.readlink()}", described(wanted)), *left)
    if not stat.S_ISREG(status.st_mode):
        raise refuse_kind(wanted.path, status, kind_of_file(wanted))
    if wanted.keep:
        return left
    changes = [*left]
    if status.st_size != len(wanted.content):
        saw = HIDDEN if wanted.secret else f"{status.st_size} bytes"
        changes.append(Change("content", saw, described(wanted)))
    elif path.read_bytes() != wanted.content:
        saw = HIDDEN if wanted.secret else f"other {status.st_size} bytes"
        changes.append(Change("content", saw, described(wanted)))
    return (*changes, *accounts.rights_differ(status, wanted.mode, wanted.owner, wanted.group, machine))


def apply(wanted: File, changes: Sequence[Change], machine: Machine, say: Say) -> None:  # noqa: ARG001
    path = machine.path(wanted.path)
    if tuple(changes) == (DRAFT,):
        remove_draft(path)
        return
    if (status := seen_at(path)) is not None and not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        raise refuse_kind(wanted.path, status, kind_of_file(wanted))
    uid, gid = accounts.ids(machine, wanted.owner, wanted.group)
    put_file(path, wanted.content, Rights(wanted.mode, uid, gid))


def described(wanted: File) -> str:
    """Its content in words that may be shown."""
    return HIDDEN if wanted.secret else f"{len(wanted.content)} bytes"


def kind_of_file(wanted: File) -> str:
    return f"a file, {described(wanted)}"
