"""One attempt at one task: look, change what differs, look again.

Nothing that a task raises ends the run: errors of ours are its reason, those of the kernel become one sentence, and
anything else is a bug, which is said and blocks what depends on the task.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.nodeup.catalog import Kind, UnitKind
from protokube.nodeup.changes import Change, Result
from protokube.nodeup.engine.failures import explained, reason
from protokube.nodeup.engine.restarts import Restarts
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.values import Task, Unit

log = logging.getLogger("protokube.nodeup")
RESTART = "restart"
"""The `what` of a change that asks a unit to restart, if it runs, because of `restart_on`."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """How it went. A failure that may pass by itself is `again`."""

    result: Result
    changes: tuple[Change, ...] = ()
    why: str = ""
    again: bool = False


@dataclass(frozen=True, slots=True)
class Around:
    """What attempts of one run share."""

    machine: Machine
    kinds: Mapping[type[Task], Kind]
    restarts: Restarts | None = None
    """None where nothing runs that could be restarted."""
    restarted_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the units that a change restarts, by the key of the task."""


def try_once(task: Task, around: Around, say: Say) -> Attempt:
    """Make one task true, or tell why not."""
    changes: list[Change] = []

    def work() -> Result:
        changes.extend(look(task, around))
        if not changes:
            return Result.UNCHANGED
        change(task, tuple(changes), around, say)
        if left := look(task, around):
            raise Refused("changed, but it still differs", saw="; ".join(map(str, left)))
        return Result.CHANGED

    return attempt(task, work, changes)


def look_once(task: Task, around: Around) -> Attempt:
    """What would change; nothing is."""
    changes: list[Change] = []

    def work() -> Result:
        changes.extend(look(task, around))
        return Result.CHANGED if changes else Result.UNCHANGED

    return attempt(task, work, changes)


def attempt(task: Task, work: Callable[[], Result], changes: Sequence[Change]) -> Attempt:
    """Do the work; what it raises becomes a failure with a reason."""
    try:
        result = work()
    except ProtokubeError as error:
        return Attempt(Result.FAILED, tuple(changes), reason(error), again=isinstance(error, TryLater))
    except OSError as error:
        return Attempt(Result.FAILED, tuple(changes), reason(explained(error, task.about)))
    except Exception as error:  # as in the round of an agent: one task must not keep the others from their work
        log.exception("%s: unexpected error, please report it", task.key)
        return Attempt(Result.FAILED, tuple(changes), f"a bug in protokube: {type(error).__name__}: {error}")
    return Attempt(result, tuple(changes))


def look(task: Task, around: Around) -> tuple[Change, ...]:
    """What differs, with the restart that a unit still has to make."""
    changes = tuple(around.kinds[type(task)].look(task, around.machine))
    if causes := causes_of_restart(task, around):
        changes += (restart(causes),)
    return changes


def causes_of_restart(task: Task, around: Around) -> tuple[str, ...]:
    """Keys of tasks that changed after a unit was started; none for a unit that somebody else starts."""
    if isinstance(task, Unit) and task.running is True and around.restarts:
        return around.restarts.pending(task.name)
    return ()


def restart(causes: Sequence[str]) -> Change:
    return Change(RESTART, f"started before {', '.join(causes)} changed", "restarted")


def change(task: Task, changes: tuple[Change, ...], around: Around, say: Say) -> None:
    """Apply the changes; first write down which units have to restart for it."""
    kind, machine, restarts = around.kinds[type(task)], around.machine, around.restarts
    units = around.restarted_by.get(task.key, ())
    noted = [unit for unit in units if restarts and restarts.note(unit, task.key)]
    try:
        if isinstance(task, Unit) and isinstance(kind, UnitKind) and causes_of_restart(task, around):
            apply_and_restart(task, changes, kind, machine, say)
        else:
            kind.apply(task, changes, machine, say)
    except Exception:
        if restarts and noted and unchanged(task, changes, kind, machine):
            for unit in noted:
                restarts.withdraw(unit, task.key)
        raise
    if isinstance(task, Unit) and restarts:
        restarts.done(task.name)


def apply_and_restart(task: Unit, changes: tuple[Change, ...], kind: UnitKind, machine: Machine, say: Say) -> None:
    """Restart it once: a change of its own file, or its start, serves both."""
    before = kind.started_at(task.name, machine)
    if own := [each for each in changes if each.what != RESTART]:
        kind.apply(task, own, machine, say)
    if kind.started_at(task.name, machine) == before:
        kind.restart(task, machine, say)


def unchanged(task: Task, changes: tuple[Change, ...], kind: Kind, machine: Machine) -> bool:
    """Whether a failed attempt left everything as it was. If that cannot be told, it counts as changed."""
    try:
        return tuple(kind.look(task, machine)) == changes
    except (ProtokubeError, OSError):  # the reason of the attempt is told, not this one
        return False
