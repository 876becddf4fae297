"""Which task begins next: what waits for others, for its turn, or for another attempt. Pure; the caller has the clock.

A failure blocks everything that needs the failed task, however far, and nothing else. Tasks of one lane run one at a
time, in their order: a package manager has one lock, and ids of users would otherwise depend on who comes first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from protokube.nodeup.order import Graph
from protokube.nodeup.values import Task


class Schedule:
    """One run over a graph. Every task ends as done, failed or blocked, unless the run is stopped."""

    def __init__(self, graph: Graph, lane: Callable[[Task], str], *, workers: int) -> None:
        """`lane`: the name of the lane of a task, empty for none."""
        self._tasks = {task.key: task for task in graph.tasks}
        self._lane, self._workers = lane, workers
        self._waits_for = {key: set(graph.needs[key]) for key in self._tasks}
        self._needed_by: Mapping[str, list[str]] = defaultdict(list)
        for key, needs in graph.needs.items():
            for need in needs:
                self._needed_by[need].append(key)
        self._waiting = dict.fromkeys(self._tasks)
        """Keys that have not begun, in the order of the graph."""
        self._due: dict[str, float] = {}
        self.running: set[str] = set()

    @property
    def finished(self) -> bool:
        return not self._waiting and not self.running

    @property
    def next_due(self) -> float | None:
        """When the next attempt of a task may begin that waits for one."""
        return min(self._due.values(), default=None)

    def begin(self, now: float) -> Iterator[Task]:
        """Take every task that can begin now; each is running from then on."""
        lanes = {self._lane(self._tasks[key]) for key in (*self.running, *self._due)} - {""}
        for key in list(self._waiting):
            if len(self.running) >= self._workers:
                return
            if self._waits_for[key]:
                continue
            task = self._tasks[key]
            lane = self._lane(task)
            if key in self._due:
                if self._due[key] > now:
                    continue
                del self._due[key]
            elif lane in lanes:
                continue
            lanes |= {lane} - {""}
            del self._waiting[key]
            self.running.add(key)
            yield task

    def later(self, key: str, due: float) -> None:
        """Another attempt at that time. It keeps its lane: what comes after it there may count on its turn."""
        self.running.remove(key)
        self._due[key] = due
        self._waiting = dict.fromkeys(each for each in self._tasks if each in self._waiting or each == key)

    def done(self, key: str) -> None:
        self.running.remove(key)
        for other in self._needed_by[key]:
            self._waits_for[other].discard(key)

    def failed(self, key: str) -> tuple[str, ...]:
        """Keys of the tasks that this failure blocks, in their order; those blocked before are not among them."""
        self.running.remove(key)
        blocked: set[str] = set()
        found = [key]
        while found:
            new = [each for each in self._needed_by[found.pop()] if each in self._waiting and each not in blocked]
            blocked.update(new)
            found += new
        ordered = tuple(each for each in self._tasks if each in blocked)
        for each in ordered:
            del self._waiting[each]
        return ordered

    def stop(self) -> tuple[str, ...]:
        """Begin nothing any more; returns the keys of what will not be tried."""
        left = tuple(self._waiting)
        self._waiting.clear()
        self._due.clear()
        return left
