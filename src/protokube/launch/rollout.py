"""The rollout record: which revision is in force, which master restarts for it, and where it stopped. Pure.

One record in the store for each cluster. Masters take turns: a master that has to restart something for a revision
writes itself into the record first, and removes itself once everything it runs is healthy again. No time limit ends a
turn: a second master must not restart while the first is down, however long that lasts.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, fields, replace
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T", "Turn", "Failure", "Event")
HINT = "correct the spec and run `up` again, or return with `protokube rollout undo`"
"""What to do about a revision that stopped, or cannot be taken."""
EVENTS = 50
"""The newest events are kept."""


class State(Enum):
    ROLLING = "rolling"
    DONE = "done"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The master that restarts now."""

    machine: str
    """Its id."""
    name: str
    at: float
    """When it began, in seconds since 1970 by the clock of that master."""
    revision: int = 0
    """The revision that it ran then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a rollout stopped."""

    machine: str
    name: str
    revision: int
    text: str
    """What did not come up, and what it logged."""

    def __str__(self) -> str:
        return f"revision {self.revision} stopped at {self.name}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of the timeline."""

    at: float
    machine: str
    """The name of the master; "" for an operator."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """The record. Every change of it is a new value, written over exactly the one that was read."""

    wanted: int
    """The revision that all masters should run."""
    before: int = 0
    """The last revision that all masters ran; machines that boot during a rollout start with it. 0 without one."""
    state: State = State.ROLLING
    turn: Turn | None = None
    failure: Failure | None = None
    events: tuple[Event, ...] = field(default=(), compare=False)

    def at_boot(self) -> int:
        """The revision with which a new machine starts; it takes the wanted one in its turn."""
        return self.wanted if self.state is State.DONE or not self.before else self.before

    def noted(self, at: float, machine: str, text: str) -> Rollout:
        events = (*self.events, Event(at=at, machine=machine, text=text))
        return replace(self, events=events[-EVENTS:])

    def begun(self, wanted: int, at: float, author: str) -> Rollout:
        """Roll out another revision, or the same one again after it stopped. A turn that is under way stays."""
        before = self.wanted if self.state is State.DONE else self.before
        after = replace(self, wanted=wanted, before=before, state=State.ROLLING, failure=None)
        return after.noted(at, "", f"revision {wanted} put in force by {author}")

    def taken(self, turn: Turn, why: str) -> Rollout:
        assert self.turn is None, "one master at a time"
        return replace(self, turn=turn).noted(turn.at, turn.name, f"takes revision {self.wanted}: {why}")

    def ended(self, at: float, name: str, text: str) -> Rollout:
        """The turn is over: everything on that master is healthy."""
        return replace(self, turn=None).noted(at, name, text)

    def stopped(self, failure: Failure, at: float) -> Rollout:
        """No other master takes this revision. The turn stays until its master is healthy with the former one."""
        after = replace(self, state=State.STOPPED, failure=failure)
        return after.noted(at, failure.name, f"revision {failure.revision} stopped: {failure.text}")

    def completed(self, at: float, name: str) -> Rollout:
        return replace(self, state=State.DONE).noted(at, name, f"all masters run revision {self.wanted}")


def encode(record: Rollout) -> bytes:
    tree = asdict(record) | {"state": record.state.value}
    return (json.dumps(tree, indent=1, sort_keys=True) + "\n").encode()


def decode(data: bytes) -> Rollout | None:
    """None if it cannot be read in full: an agent then changes nothing."""
    try:
        tree = json.loads(data)
        return _rollout(tree)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None


def _rollout(tree: dict[str, Any]) -> Rollout:
    turn, failure = tree["turn"], tree["failure"]
    record = Rollout(
        wanted=_number(tree["wanted"]),
        before=_number(tree["before"]),
        state=State(tree["state"]),
        turn=None if turn is None else _part(Turn, turn),
        failure=None if failure is None else _part(Failure, failure),
        events=tuple(_part(Event, each) for each in tree["events"]),
    )
    if record.wanted < 1 or record.before < 0:
        raise ValueError("no revision has such a number")
    return record


def _number(value: object) -> int:
    if type(value) is not int:  # a bool is an int, too
        raise TypeError("a revision has a whole number")
    return value


def _part(kind: type[T], tree: dict[str, Any]) -> T:
    """Check each value: a turn whose machine is no name would be nobody's, and never end."""
    made = kind(**tree)
    for each in fields(kind):
        value = getattr(made, each.name)
        if each.type == "str" and not isinstance(value, str):
            raise TypeError(f"{each.name} is no text")
        if each.type == "int":
            _number(value)
        if each.type == "float" and (isinstance(value, bool) or not math.isfinite(value)):
            raise TypeError(f"{each.name} is no time")
    return made
