"""A far side for runs of nodeup: a machine that is a set of names, and tasks that add theirs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builders.nodeup import DEBIAN, Heard, no_commands
from protokube.errors import Refused, TryLater
from protokube.nodeup.catalog import Kind
from protokube.nodeup.changes import Change, Outcome
from protokube.nodeup.engine.attempt import Around
from protokube.nodeup.engine.control import Control
from protokube.nodeup.engine.restarts import Restarts
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.order import Graph, order
from protokube.nodeup.run import Patience, Run, RunControl, restarted_by
from protokube.nodeup.values import Command, Task, Unit

AT_ONCE = Patience(attempts=3, first=0.0)


@dataclass
class World:
    """Implements Kind for tasks without paths, and for units; what happens at one is chosen by its name."""

    true: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    later: dict[str, int] = field(default_factory=dict)
    """How often a task has to be tried later, by name."""
    lying: set[str] = field(default_factory=set)
    """Tasks that report success and change nothing."""
    during: dict[str, Callable[[Say], None]] = field(default_factory=dict)
    applied: list[str] = field(default_factory=list)
    restarted: list[str] = field(default_factory=list)
    """Units that the runner restarted."""
    started: dict[str, float] = field(default_factory=dict)
    """When units were started or restarted for what is their own."""
    lane: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, wanted: Any, machine: Machine, /) -> Sequence[Change]:
        if wanted.name in self.refused and wanted.name.startswith("look"):
            raise Refused(f"{wanted.name} must not be")
        return () if wanted.name in self.true else (Change("state", "false", "true"),)

    def apply(self, wanted: Any, changes: Sequence[Change], machine: Machine, say: Say, /) -> None:
        name = wanted.name
        if name in self.during:
            self.during[name](say)
        with self.lock:
            self.applied.append(name)
            if isinstance(wanted, Unit):
                self.started[name] = self.started.get(name, 0.0) + 1
            if self.later.get(name, 0) > 0:
                self.later[name] -= 1
                raise TryLater(f"{name} is not ready", hint="wait")
            if name in self.refused:
                raise Refused(f"{name} must not be", saw="x", want="y", hint="ask somebody")
            if name not in self.lying:
                self.true.add(name)

    def restart(self, wanted: Unit, machine: Machine, say: Say, /) -> bool:
        self.restarted.append(wanted.name)
        if wanted.name in self.refused:
            raise Refused(f"{wanted.name} does not start")
        return True

    def started_at(self, name: str, machine: Machine, /) -> float | None:
        return self.started.get(name, 0.0)

    def run(
        self, tasks: Sequence[Task], *, notes: Path | None = None, heard: Heard | None = None,
        control: RunControl | None = None, workers: int = 4, plan: bool = False,
    ) -> Mapping[str, Outcome]:  # fmt: skip
        """One run; outcomes by name."""
        graph: Graph = order(tasks)
        kinds: Mapping[type[Task], Kind] = {Command: self, Unit: self}
        machine = Machine(facts=DEBIAN, run=no_commands)
        around = Around(machine, kinds, Restarts(notes) if notes else None, restarted_by(graph))
        run = Run(graph, around, heard or Heard(), control or Control(), workers=workers, patience=AT_ONCE)
        return {outcome.key.split()[1]: outcome for outcome in (run.plan() if plan else run.carry_out())}
