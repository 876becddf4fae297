"""How each kind of task is looked at and made true: a table, and modules that are imported when they are needed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.values import KINDS as TASKS
from protokube.nodeup.values import Group, Packages, Task, Unit, User

Look = Callable[[Any, Machine], Sequence[Change]]
Apply = Callable[[Any, Sequence[Change], Machine, Say], None]


class Kind(Protocol):
    """What the runner knows of one kind of task."""

    @property
    def lane(self) -> str:
        """Tasks of one lane run one at a time, in their order; empty: any number at a time."""
        ...  # fmt: skip

    def look(self, wanted: Any, machine: Machine, /) -> Sequence[Change]: ...

    def apply(self, wanted: Any, changes: Sequence[Change], machine: Machine, say: Say, /) -> None: ...


@runtime_checkable
class UnitKind(Kind, Protocol):
    """What the runner also knows of units, whose restarts it decides."""

    def restart(self, wanted: Unit, machine: Machine, say: Say, /) -> bool:
        """Restart it if it runs and is ours to restart; whether it was."""
        ...  # fmt: skip

    def started_at(self, name: str, machine: Machine, /) -> float | None:
        """When it was started; None if it does not run."""
        ...  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lazy:
    """Implements Kind by a module of `tasks`."""

    module: str
    lane: str = ""

    def look(self, wanted: Any, machine: Machine, /) -> Sequence[Change]:
        found: Look = self._part("look")
        return found(wanted, machine)

    def apply(self, wanted: Any, changes: Sequence[Change], machine: Machine, say: Say, /) -> None:
        made: Apply = self._part("apply")
        made(wanted, changes, machine, say)

    def _part(self, name: str) -> Any:
        return getattr(importlib.import_module(f"protokube.nodeup.tasks.{self.module}"), name)


class LazyUnit(Lazy):
    """Implements UnitKind, too."""

    __slots__ = ()

    def restart(self, wanted: Unit, machine: Machine, say: Say, /) -> bool:
        found: Callable[[Unit, Machine, Say], bool] = self._part("restart")
        return found(wanted, machine, say)

    def started_at(self, name: str, machine: Machine, /) -> float | None:
        found: Callable[[str, Machine], float | None] = self._part("started_at")
        return found(name, machine)


ACCOUNTS = "accounts"
"""Packages bring users of their own: which ids are free then must not depend on who comes first."""
LANES: Mapping[type[Task], str] = {Group: ACCOUNTS, User: ACCOUNTS, Packages: ACCOUNTS}
KINDS: Mapping[type[Task], Kind] = {
    kind: (LazyUnit if kind is Unit else Lazy)(kind.__name__.lower(), LANES.get(kind, "")) for kind in TASKS
}
"""The module of a kind has its name: `tasks/file.py`."""
