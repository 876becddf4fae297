"""Carry out a graph of tasks: parallel where independent, each with its result and its reason.

Each attempt runs in a thread of its own and touches nothing of this module; the loop in the caller's thread alone
decides. So what is hard, an interruption, is one event among others: nothing more begins, commands are ended, the work
under way gets some seconds, and every task has an outcome, also those that were not tried.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from protokube.errors import TryLater
from protokube.nodeup.changes import Change, Outcome, Result
from protokube.nodeup.engine.attempt import Around, Attempt, look_once, restart, try_once
from protokube.nodeup.engine.control import Control
from protokube.nodeup.engine.schedule import Schedule
from protokube.nodeup.order import Graph
from protokube.nodeup.values import Task, Unit

WORKERS = 8
SECONDS_TO_END = 10.0
"""How long the work under way may take after an interruption; a second one ends it at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often one task is tried in one run, and how long it waits in between: twice as long each time."""

    attempts: int = 5
    first: float = 1.0
    most: float = 30.0

    def wait(self, attempt: int) -> float:
        return float(min(self.first * 2 ** (attempt - 1), self.most))


class Observer(Protocol):
    """Sees a run while it goes on. `said` is called from other threads."""

    def began(self, key: str) -> None: ...

    def said(self, key: str, text: str) -> None: ...

    def waits(self, key: str, why: str, seconds: float) -> None:
        """Another attempt follows after so many seconds."""
        ...  # fmt: skip

    def ended(self, outcome: Outcome) -> None: ...


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt ended, after so many seconds of processor time of its thread."""

    key: str
    attempt: Attempt
    cpu: float


RunControl = Control[Ended]


def restarted_by(graph: Graph) -> dict[str, tuple[str, ...]]:
    """The units that a change restarts, by the key of the task; only those that we start. Pure."""
    units = [task for task in graph.tasks if isinstance(task, Unit) and task.running is True]
    keys = {key for unit in units for key in unit.restart_on}
    return {key: tuple(unit.name for unit in units if key in unit.restart_on) for key in keys}


class Run:
    """One run over a graph, for one call of `carry_out` or `plan`."""

    def __init__(
        self,
        graph: Graph,
        around: Around,
        observer: Observer,
        control: RunControl,
        *,
        workers: int = WORKERS,
        patience: Patience | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._graph, self._around, self._observer, self._control = graph, around, observer, control
        self._workers, self._patience, self._clock = workers, patience or Patience(), clock
        self._zero = clock()
        self._began: dict[str, float] = {}
        self._cpu: dict[str, float] = {}
        self._attempts: dict[str, int] = {}
        self._outcomes: dict[str, Outcome] = {}
        self._changes_before: dict[str, str] = {}
        """For a plan: one change that comes before a task, by the key of the task."""

    def carry_out(self) -> tuple[Outcome, ...]:
        """Make everything true that can be; outcomes in the order of the graph."""
        schedule = Schedule(self._graph, self._lane, workers=self._workers)
        while not schedule.finished and not self._control.stopping.is_set():
            for task in schedule.begin(self._clock()):
                self._start(task)
            event = self._control.next(None if schedule.next_due is None else schedule.next_due - self._clock())
            if event is not None:
                self._took_place(event, schedule)
        if not schedule.finished:
            self._end_early(schedule)
        return tuple(self._outcomes[task.key] for task in self._graph.tasks)

    def plan(self) -> tuple[Outcome, ...]:
        """Only look: CHANGED is what would change. What cannot be told before another change would change, too."""
        for task in self._graph.tasks:
            if self._control.stop_asked():
                self._outcome(task.key, Result.STOPPED, why="nodeup was stopped")
                continue
            self._began[task.key] = self._clock()
            began = time.thread_time()
            attempt = self._foreseen(task, look_once(task, self._around))
            self._cpu[task.key] = time.thread_time() - began
            self._outcome(task.key, attempt.result, attempt.changes, attempt.why, again=attempt.again)
        return tuple(self._outcomes[task.key] for task in self._graph.tasks)

    def _foreseen(self, task: Task, seen: Attempt) -> Attempt:
        """What a look alone cannot know: what changes before this task, also far before."""
        needs = self._graph.needs[task.key]
        causes = [key for key in needs if self._outcomes[key].result is Result.CHANGED]
        earlier = [self._changes_before[key] for key in needs if key in self._changes_before]
        if causes or earlier:
            self._changes_before[task.key] = first = (causes or earlier)[0]
            if seen.result is Result.FAILED:
                later = Change("state", "not known yet", f"looked at again after {first}")
                return Attempt(Result.CHANGED, (later,), f"cannot be told now: {seen.why}")
        if isinstance(task, Unit) and self._around.restarts and seen.result is not Result.FAILED:
            changing = [key for key in causes if key in task.restart_on]
            if changing and task.running is True:
                return Attempt(Result.CHANGED, (*seen.changes, restart(changing)), seen.why)
        return seen

    def _lane(self, task: Task) -> str:
        return self._around.kinds[type(task)].lane

    def _start(self, task: Task) -> None:
        self._attempts[task.key] = self._attempts.get(task.key, 0) + 1
        if task.key not in self._began:
            self._began[task.key] = self._clock()
            self._observer.began(task.key)
        threading.Thread(target=self._attempt, args=(task,), name=task.key[:60], daemon=True).start()

    def _attempt(self, task: Task) -> None:
        began = time.thread_time()
        attempt = try_once(task, self._around, lambda text: self._said(task.key, text))
        self._control.tell(Ended(task.key, attempt, time.thread_time() - began))

    def _said(self, key: str, text: str) -> None:
        """Long work tells its progress, so this is where it learns that it is to end."""
        if self._control.stopping.is_set():
            raise TryLater("nodeup was stopped")
        self._observer.said(key, text)

    def _took_place(self, event: Ended, schedule: Schedule) -> None:
        key, attempt = event.key, event.attempt
        self._cpu[key] = self._cpu.get(key, 0.0) + event.cpu
        if attempt.again and not self._control.stopping.is_set() and self._attempts[key] < self._patience.attempts:
            seconds = self._patience.wait(self._attempts[key])
            schedule.later(key, self._clock() + seconds)
            self._observer.waits(key, attempt.why, seconds)
            return
        if attempt.again and self._control.stopping.is_set():
            schedule.done(key)
            self._outcome(key, Result.STOPPED, attempt.changes, attempt.why)
            return
        if attempt.result is not Result.FAILED:
            schedule.done(key)
            self._outcome(key, attempt.result, attempt.changes, attempt.why)
            return
        tried = f" ({self._attempts[key]} attempts)" if attempt.again else ""
        blocked = schedule.failed(key)
        self._outcome(key, Result.FAILED, attempt.changes, f"{attempt.why}{tried}", again=attempt.again)
        for each in blocked:
            self._outcome(each, Result.BLOCKED, why=key)

    def _end_early(self, schedule: Schedule) -> None:
        """Wait a little for what is under way; everything else is not tried."""
        for key in schedule.stop():
            self._outcome(key, Result.STOPPED, why="nodeup was stopped")
        deadline, asked = self._clock() + SECONDS_TO_END, self._control.asked
        while schedule.running and self._control.asked == asked and (left := deadline - self._clock()) > 0:
            event = self._control.next(left)
            if event is not None:
                self._took_place(event, schedule)
        for key in sorted(schedule.running):
            self._outcome(key, Result.STOPPED, why="nodeup was stopped while it was under way")

    def _outcome(
        self, key: str, result: Result, changes: tuple[Change, ...] = (), why: str = "", *, again: bool = False
    ) -> None:
        now = self._clock()
        began = self._began.get(key, now)
        outcome = Outcome(
            key=key, result=result, changes=changes, why=why, again=again, began=began - self._zero,
            seconds=now - began, cpu=self._cpu.get(key, 0.0),
        )  # fmt: skip
        self._outcomes[key] = outcome
        self._observer.ended(outcome)
