"""Commands with a check: what cannot be said as a fact about files, units and packages."""

from __future__ import annotations

from collections.abc import Sequence

from protokube.errors import Refused
from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Ran, Say
from protokube.nodeup.values import Command

LAST_LINES = 5
SECONDS_TO_CHECK = 60.0


def look(wanted: Command, machine: Machine) -> tuple[Change, ...]:
    """The check may run at any time, also for a plan: it must change nothing."""
    ran = machine.run(wanted.check, seconds=min(wanted.seconds, SECONDS_TO_CHECK))
    return () if ran.code == 0 else (Change("check", f"ends with {ran.code}", "ends with 0"),)


def apply(wanted: Command, changes: Sequence[Change], machine: Machine, say: Say) -> None:  # noqa: ARG001
    ran = machine.run(wanted.run, seconds=wanted.seconds, say=say)
    if ran.code != 0:
        raise Refused(
            f"`{wanted.run[0]}` of the command {wanted.name} failed with {ran.code}",
            saw=last_lines(ran),
            hint="run it by hand to see more",
        )


def last_lines(ran: Ran) -> str:
    """The end of what a command wrote, which usually has the reason."""
    lines = [line.strip() for line in ran.output.splitlines() if line.strip()]
    return "; ".join(lines[-LAST_LINES:]) or "it wrote nothing"
