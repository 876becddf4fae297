"""Kernel modules: a file for each boot, and loaded now where a kernel runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from protokube.errors import Refused
from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.tasks.command import last_lines
from protokube.nodeup.tasks.kernel import file_differs, of_the_host, write
from protokube.nodeup.values import Module


def look(wanted: Module, machine: Machine) -> tuple[Change, ...]:
    changes = file_differs(wanted, machine)
    missing = tuple(_missing(wanted, machine)) if machine.boots else ()
    if missing and not changes and machine.facts.container:
        raise _host_must_load([change.what for change in missing])
    return (*changes, *missing)


def _missing(wanted: Module, machine: Machine) -> Iterator[Change]:
    built_in = _built_in(machine)
    for name in wanted.names:
        plain = name.replace("-", "_")
        if plain not in built_in and not machine.path(f"/sys/module/{plain}").is_dir():
            yield Change(name, "not loaded", "loaded")


def _built_in(machine: Machine) -> frozenset[str]:
    """Modules that are part of the kernel that runs; those without parameters have no folder in /sys/module."""
    try:
        text = machine.path(f"/lib/modules/{os.uname().release}/modules.builtin").read_text()
    except OSError:
        return frozenset()
    names = (line.rpartition("/")[2].partition(".ko")[0] for line in text.splitlines())
    return frozenset(name.replace("-", "_") for name in names)


def apply(wanted: Module, changes: Sequence[Change], machine: Machine, say: Say) -> None:  # noqa: ARG001
    if file_differs(wanted, machine):
        write(wanted, machine)
    if not machine.boots:
        return
    missing = [change.what for change in _missing(wanted, machine)]
    if missing and machine.facts.container:
        raise _host_must_load(missing)
    for name in missing:
        ran = machine.run(("modprobe", "--", name), seconds=60)
        if ran.code != 0:
            raise Refused(
                f"the kernel module {name} cannot be loaded", saw=last_lines(ran),
                hint="is it built for the kernel that runs, and does the machine need a reboot after an update?",
            )  # fmt: skip


def _host_must_load(names: Sequence[str]) -> Refused:
    listed = ", ".join(names)
    return of_the_host(f"cannot load {listed}", "not loaded", "loaded", f"there: `modprobe --all {' '.join(names)}`")
