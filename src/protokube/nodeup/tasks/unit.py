"""A systemd unit: its file and drop-ins, whether it is enabled, and whether it runs.

With `running=None` nothing is ever started, stopped or restarted: the agent does that. Other drop-ins of a user stay,
and a unit that a person masked is refused.

For `restart_on` the runner decides: it calls `restart` after one of those tasks changed something, or when `started_at`
is before that change, as after a run that was killed in between. Both do nothing in the root of an image.
"""

from __future__ import annotations

from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.units import state
from protokube.nodeup.units.jobs import Systemd
from protokube.nodeup.units.names import checked
from protokube.nodeup.values import Unit


def look(wanted: Unit, machine: Machine) -> tuple[Change, ...]:
    """What differs. Refused if it is masked, or something else is where its file belongs."""
    return state.look(wanted, machine)


def apply(wanted: Unit, changes: tuple[Change, ...], machine: Machine, say: Say) -> None:  # noqa: ARG001
    """Make it so, and wait for the jobs. Refused with its result and journal if it does not start."""
    state.apply(wanted, machine, say)


def restart(wanted: Unit, machine: Machine, say: Say = lambda _: None) -> bool:
    """Restart it if it runs and is ours to restart, and wait for that; return whether it was restarted."""
    if not machine.boots or wanted.running is not True or not Systemd(machine).look(wanted.name).runs:
        return False
    state.restart(wanted, machine, say)
    return True


def started_at(name: str, machine: Machine) -> float | None:
    """When it was started, in seconds of the wall clock; None if it does not run."""
    return Systemd(machine).started_at(checked(name)) if machine.boots else None
