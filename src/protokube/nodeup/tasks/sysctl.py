"""Kernel parameters: a file for each boot, and the values in force where a kernel runs.

In a container most of them are read-only. The file is written all the same, and what the host must set is refused with
its name: to go on would leave a machine that only looks configured.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from protokube.errors import Refused
from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.placing import about
from protokube.nodeup.tasks.kernel import file_differs, of_the_host, write
from protokube.nodeup.values import Sysctl

READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


def look(wanted: Sysctl, machine: Machine) -> tuple[Change, ...]:
    changes = file_differs(wanted, machine)
    live = tuple(_live(wanted, machine)) if machine.boots else ()
    if not changes and (fixed := [each for each in live if not os.access(_path(each.what, machine), os.W_OK)]):
        raise _read_only(fixed, machine)
    return (*changes, *live)


def _live(wanted: Sysctl, machine: Machine) -> Iterator[Change]:
    for name, value in wanted.values.items():
        path = _path(name, machine)
        try:
            with about(path):
                seen = path.read_text()
        except FileNotFoundError:
            seen = "missing"
        if seen.split() != value.split():
            yield Change(name, " ".join(seen.split()), value)


def apply(wanted: Sysctl, changes: Sequence[Change], machine: Machine, say: Say) -> None:  # noqa: ARG001
    if file_differs(wanted, machine):
        write(wanted, machine)
    if not machine.boots:
        return
    fixed = []
    for change in _live(wanted, machine):
        try:
            _set(change, _path(change.what, machine))
        except OSError as error:
            if error.errno not in READ_ONLY:
                raise
            fixed.append(change)
    if fixed:
        raise _read_only(fixed, machine)


def _set(change: Change, path: Path) -> None:
    try:
        with about(path), path.open("r+b", buffering=0) as file:  # never makes a file: its parameter would not exist
            file.write(change.want.encode() + b"\n")
    except FileNotFoundError:
        raise Refused(
            f"this kernel has no parameter {change.what}",
            want=change.want,
            hint="is its module loaded?",
        ) from None
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise Refused(
            f"the kernel does not take this value for {change.what}", saw=change.saw, want=change.want
        ) from error


def _read_only(fixed: Sequence[Change], machine: Machine) -> Refused:
    names = ", ".join(change.what for change in fixed)
    saw = ", ".join(f"{change.what} = {change.saw}" for change in fixed)
    hint = " && ".join(f"sysctl -w {change.what}='{change.want}'" for change in fixed)
    if machine.facts.container:
        return of_the_host(f"cannot set {names}", saw, ", ".join(change.want for change in fixed), f"there: `{hint}`")
    return Refused(f"cannot set {names}: read-only", saw=saw, want=", ".join(change.want for change in fixed))


def _path(name: str, machine: Machine) -> Path:
    """As sysctl(8) reads names: the first separator of a name says which one it is."""
    dots, slashes = name.partition(".")[0], name.partition("/")[0]
    inside = name if len(slashes) < len(dots) else name.translate(str.maketrans("./", "/."))
    return machine.path(f"/proc/sys/{inside}")
