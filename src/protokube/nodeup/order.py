"""From a list of tasks to a graph: what each one needs, derived from paths, owners and units. Pure.

A model names in `after` only what cannot be seen in the tasks themselves. All problems of a list are reported at once,
and the same list always gives the same order: a task comes as early as it was declared, unless it needs a later one.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from protokube.errors import Refused
from protokube.nodeup.claims import (
    Claim,
    Shape,
    ancestors,
    claims_of,
    led_to,
    links_among,
    place_of,
    problems_of_paths,
)
from protokube.nodeup.values import Asset, Directory, File, Image, Installed, Link, Module, Sysctl, Task, Unit, User


class WrongTasks(Refused):
    """A list of tasks that cannot be carried out; has every problem at once."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        super().__init__(
            f"the tasks of this machine contradict each other: {count} problem{'' if count == 1 else 's'}",
            saw="\n        ".join(self.problems),
            hint="files of the user (`fileAssets`, `hooks`) must not have the names of protokube's own",
        )


@dataclass(frozen=True, slots=True)
class Graph:
    """Tasks in an order in which each comes after all that it needs."""

    tasks: tuple[Task, ...]
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Keys of the tasks that must be done before, by key; sorted, direct ones only."""


def order(tasks: Sequence[Task], *, cache: str = "") -> Graph:
    """Order the tasks; WrongTasks with all problems. `cache` is where assets lie, which a mount may cover."""
    problems = [*_duplicates(tasks), *_unknown(tasks), *problems_of_paths(tasks)]
    if problems:
        raise WrongTasks(problems)
    derived = _Derived(tasks, cache)
    needs = {task.key: tuple(sorted(set(derived.needs(task)))) for task in tasks}
    ordered, cycles = _sorted([task.key for task in tasks], needs)
    if cycles:
        raise WrongTasks([f"these need each other: {' -> '.join(cycle)}" for cycle in cycles])
    by_key = {task.key: task for task in tasks}
    return Graph(tuple(by_key[key] for key in ordered), {key: needs[key] for key in ordered})


def _duplicates(tasks: Sequence[Task]) -> Iterator[str]:
    for key, count in Counter(task.key for task in tasks).items():
        if count > 1:
            yield f"{key} is declared {count} times"


def _unknown(tasks: Sequence[Task]) -> Iterator[str]:
    keys = {task.key for task in tasks}
    for task in tasks:
        named = [("after", key) for key in task.after]
        if isinstance(task, Unit):
            named += [("restart_on", key) for key in task.restart_on]
        if isinstance(task, Installed | Image):
            named.append(("asset", f"asset {task.asset}"))
        for where, key in named:
            if key not in keys:
                yield f"{task.key} names in `{where}` a task that does not exist: {key}"


class _Derived:
    """What tasks need by what they say, from indexes over all of them."""

    def __init__(self, tasks: Sequence[Task], cache: str) -> None:
        self._keys = {task.key for task in tasks}
        self._cache = cache
        self._modules = [task.key for task in tasks if isinstance(task, Module)]
        self._links = links_among(tasks)
        self._claims: dict[str, list[Claim]] = defaultdict(list)
        for task in tasks:
            for claim in claims_of(task):
                self._claims[place_of(claim.path, self._links)].append(claim)

    def needs(self, task: Task) -> Iterator[str]:
        """Keys of all tasks that must be done before this one; some perhaps several times."""
        yield from task.after
        for claim in claims_of(task):
            yield from self._above(claim.path)
            yield from self._beneath(claim)
        match task:
            case File(owner=owner, group=group) | Directory(owner=owner, group=group):
                yield from self._known(f"user {owner}", f"group {group}")
            case User(group=group):
                yield from self._known(f"group {group}")
            case Link(path=path, target=target):
                yield from (claim.key for claim in self._claims.get(place_of(led_to(path, target), self._links), ()))
            case Installed(asset=asset) | Image(asset=asset):
                yield from self._known(f"asset {asset}")
            case Asset() if self._cache:
                yield from self._above(f"{self._cache}/asset")
            case Unit(restart_on=restart_on):
                yield from restart_on
            case Sysctl():
                yield from self._modules  # parameters of a module exist once it is loaded

    def _above(self, path: str) -> Iterator[str]:
        """Also the links by which it is reached."""
        for above in dict.fromkeys((*ancestors(path), *ancestors(place_of(path, self._links)))):
            for claim in self._claims.get(above, ()):
                if claim.shape in (Shape.DIRECTORY, Shape.LINK, Shape.MOUNT):
                    yield claim.key

    def _beneath(self, claim: Claim) -> Iterator[str]:
        """At the same path: a mount comes first, else its directory would get its mode and be covered afterwards."""
        order_of = (Shape.MOUNT, Shape.DIRECTORY, Shape.MEMBERS)
        for other in self._claims[place_of(claim.path, self._links)]:
            if claim.shape in order_of and order_of.index(other.shape) < order_of.index(claim.shape):
                yield other.key

    def _known(self, *keys: str) -> Iterator[str]:
        yield from (key for key in keys if key in self._keys)


def _sorted(keys: Sequence[str], needs: Mapping[str, tuple[str, ...]]) -> tuple[list[str], list[list[str]]]:
    """The keys in order, and the cycles that keep some of them out of it."""
    place = {key: number for number, key in enumerate(keys)}
    waits = {key: len(needs[key]) for key in keys}
    needed_by: Mapping[str, list[str]] = defaultdict(list)
    for key in keys:
        for need in needs[key]:
            needed_by[need].append(key)
    ready = [place[key] for key in keys if not waits[key]]
    heapq.heapify(ready)
    done: list[str] = []
    while ready:
        key = keys[heapq.heappop(ready)]
        done.append(key)
        for other in needed_by[key]:
            waits[other] -= 1
            if not waits[other]:
                heapq.heappush(ready, place[other])
    return done, _cycles([key for key in keys if waits[key]], needs)


def _cycles(left: Sequence[str], needs: Mapping[str, tuple[str, ...]]) -> list[list[str]]:
    """One cycle through each group of tasks that need each other; what only waits for them is in none."""
    remaining, seen = set(left), set[str]()
    cycles: list[list[str]] = []
    for start in left:
        key, path = start, list[str]()
        while key not in seen:
            seen.add(key)
            path.append(key)
            key = next(need for need in needs[key] if need in remaining)  # each of them waits for another one
        if key in path:
            cycles.append([*path[path.index(key) :], key])
    return cycles
