"""Compare a unit with what is wanted of it, and make it so.

What is hard is a run that was killed between writing a file and restarting what reads it: then nothing differs but the
process, which still runs as the old file said. So a unit that was started before its file was written differs, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from protokube.errors import Refused
from protokube.host.systemd import UNUSABLE
from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.units import files
from protokube.nodeup.units.jobs import Seen, Systemd
from protokube.nodeup.values import Unit

ENABLED = frozenset({"enabled", "alias"})
NOT_ENABLED = frozenset({"", "disabled", "static", "indirect", "linked", "linked-runtime", "transient"})
RESTART = "restart"


def look(wanted: Unit, machine: Machine) -> tuple[Change, ...]:
    """What differs. In the root of an image: its files and links alone."""
    changes = [*files.differing(wanted, machine), *files.of_others(wanted, machine)]
    if not machine.boots:
        if wanted.enabled is not None and files.is_enabled(wanted, machine) != wanted.enabled:
            changes.append(Change("enabled", yes_or_no(not wanted.enabled), yes_or_no(wanted.enabled)))
        return tuple(changes)
    seen = Systemd(machine).look(wanted.name)
    if seen.load == "masked":
        raise files.masked(wanted.name, f"UnitFileState={seen.file}")
    changes += differing(wanted, seen)
    if not changes and outdated(wanted, machine):
        changes.append(Change(RESTART, "started before its file was written", "restarted"))
    return tuple(changes)


def differing(wanted: Unit, seen: Seen) -> Iterator[Change]:
    """What systemd says that is not as wanted. Pure."""
    if seen.needs_reload:
        yield Change("files in systemd", "older", "reloaded")
    if wanted.enabled is True and seen.file not in ENABLED:
        yield Change("enabled", seen.file or "no unit", "enabled")
    if wanted.enabled is False and seen.file not in NOT_ENABLED:
        yield Change("enabled", seen.file, "disabled")
    if wanted.running is True and not seen.runs:
        yield Change("running", seen.active, "active")
    if wanted.running is False and seen.active not in ("inactive", "failed"):
        yield Change("running", seen.active, "inactive")


def yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def outdated(wanted: Unit, machine: Machine) -> bool:
    """Whether its process runs as an older file said. Never for a unit that somebody else starts.

    A mount is not restarted either: that would unmount what programs use. New options count from the next boot on.
    """
    if wanted.running is not True or wanted.name.endswith(".mount"):
        return False
    began = Systemd(machine).started_at(wanted.name)
    return began is not None and began < files.changed_at(wanted, machine)


def apply(wanted: Unit, machine: Machine, say: Say) -> None:
    """Write, reload, enable, start: each only if it differs, so a killed run goes on where it was."""
    files.refuse_masked(wanted.name, machine)
    written = files.write(wanted, machine)
    files.give_to_root(wanted, machine)
    if not machine.boots:
        if wanted.enabled is not None and files.is_enabled(wanted, machine) != wanted.enabled:
            files.enable(wanted, machine)
        return
    files.settle_times(wanted, machine)
    systemd = Systemd(machine)
    if written or systemd.look(wanted.name).needs_reload:
        systemd.reload()
    seen = systemd.look(wanted.name)
    if enable(wanted, systemd, seen):
        seen = systemd.look(wanted.name)
    if wanted.running is True:
        run(wanted, machine, systemd, seen, say)
    elif wanted.running is False and seen.active not in ("inactive", "failed"):
        systemd.run_job(wanted.name, "StopUnit", say)


def enable(wanted: Unit, systemd: Systemd, seen: Seen) -> bool:
    """Enable or disable it if that differs; return whether it did."""
    if wanted.enabled is True and seen.file not in ENABLED:
        if not systemd.enable(wanted.name):
            raise files.not_enableable(wanted.name)
    elif wanted.enabled is False and seen.file not in NOT_ENABLED:
        systemd.disable(wanted.name)
    else:
        return False
    systemd.reload()
    return True


def run(wanted: Unit, machine: Machine, systemd: Systemd, seen: Seen, say: Say) -> None:
    if seen.load in UNUSABLE:
        message, hint = UNUSABLE[seen.load]
        raise Refused(message.format(wanted.name), saw=f"LoadState={seen.load}", hint=hint)
    if not seen.runs:
        systemd.run_job(wanted.name, "StartUnit", say)
    elif outdated(wanted, machine):
        restart(wanted, machine, say)


def restart(wanted: Unit, machine: Machine, say: Say) -> None:
    Systemd(machine).run_job(wanted.name, "RestartUnit", say)
