"""What tasks about the kernel share: a file that is read at each boot, and a container, whose kernel is its host's."""

from __future__ import annotations

import stat

from protokube.errors import Refused
from protokube.nodeup import accounts
from protokube.nodeup.changes import Change
from protokube.nodeup.claims import texts
from protokube.nodeup.machine import Machine
from protokube.nodeup.placing import Rights, about, has_draft, put_file, refuse_kind, seen_at
from protokube.nodeup.tasks.file import DRAFT
from protokube.nodeup.values import Module, Sysctl

MODE = 0o644


def file_of(wanted: Sysctl | Module) -> tuple[str, bytes]:
    """Path and content of the file for the next boots."""
    ((path, text),) = texts(wanted)
    return path, text.encode()


def file_differs(wanted: Sysctl | Module, machine: Machine) -> tuple[Change, ...]:
    inside, content = file_of(wanted)
    path = machine.path(inside)
    with about(path):
        left = (DRAFT,) if has_draft(path) else ()
        status = seen_at(path)
        if status is None:
            return (Change("file", "missing", f"{len(content)} bytes"), *left)
        if not stat.S_ISREG(status.st_mode):
            raise refuse_kind(inside, status, "a file")
        if path.read_bytes() != content:
            return (Change("file", f"other {status.st_size} bytes", f"{len(content)} bytes"), *left)
    return (*left, *accounts.rights_differ(status, MODE, "root", "root", machine))


def write(wanted: Sysctl | Module, machine: Machine) -> None:
    inside, content = file_of(wanted)
    put_file(machine.path(inside), content, Rights(MODE))


def of_the_host(what: str, saw: str, want: str, hint: str) -> Refused:
    """The kernel does not let us, and in a container it never will."""
    return Refused(f"{what}; this is a container, so its host must do it", saw=saw, want=want, hint=hint)
