"""Compare the members of one etcd cluster: do they hold the same data?

`/health` cannot answer this: two clusters under one set of names can all be healthy, and a member can lose writes
without noticing. The hard part is to tell a difference from a delay. A voter that lags, or has compacted more than the
others, is not compared in this pass and counts as silent. Two findings cannot come from a delay: a different hash at
the same revision after the same compaction, and a lower revision after as many applied log entries. The second is
needed because members with different compactions have no comparable hashes.

The larger side is not right by its size alone. An older copy of a disk and a member that missed writes form a majority
too. A member outside that majority that has progressed further then holds acknowledged writes that the majority lost.
`further` looks for such a member; if there is one, no side stays in service.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from protokube.members.start_values import Listed

LOOKS = 4
"""Status requests to every member: the revision, the log index to reach, whether it was reached, the revision again."""
ALARM_AFTER = 3


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a member is, from one status reply."""

    revision: int
    applied: int
    """Index of the last log entry that it applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashed:
    """The hash of all its keys at a revision (HashKV)."""

    hash: int
    revision: int
    compacted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """What one member reports about itself and about the member list."""

    name: str
    cluster_id: int
    members: tuple[Listed, ...]
    """Its member list, read after the third status request."""
    looks: tuple[Progress, ...]
    hashed: Hashed | None
    """At the revision that every member is asked for; None if it could not give a hash."""
    learner: bool = False

    @property
    def membership(self) -> tuple[tuple[int, bool, tuple[str, ...]], ...]:
        """Ids, roles and peer URLs only: members publish their names and client URLs themselves, possibly later."""
        return tuple(sorted((each.id, each.learner, tuple(sorted(each.peer_urls))) for each in self.members))


@dataclass(frozen=True, slots=True)
class Agree:
    """Every voter answered, and all have the same state."""


@dataclass(frozen=True, slots=True)
class NotComparable:
    """No difference was found, but not every voter could be compared."""

    why: str


@dataclass(frozen=True, slots=True)
class Side:
    """Voters with the same state."""

    names: tuple[str, ...]
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagree:
    """The voters have at least two different states."""

    sides: tuple[Side, ...]
    """The largest first."""
    silent: tuple[str, ...] = ()
    """Voters that did not answer, or could not be compared: they may be on any side."""
    further: tuple[str, ...] = ()
    """Voters outside of the majority that have progressed further: they hold writes that the majority lost."""

    @property
    def majority(self) -> Side | None:
        """The side with more than half of all voters, silent ones included in the total; None if there is none."""
        total = sum(len(side.names) for side in self.sides) + len(self.silent)
        return self.sides[0] if 2 * len(self.sides[0].names) > total else None

    @property
    def out_of_service(self) -> tuple[str, ...]:
        """Members whose API servers must not serve: the minority, or all if no majority can be trusted."""
        trusted = self.majority is not None and not self.further
        others = self.sides[1:] if trusted else self.sides
        names = [name for side in others for name in side.names]
        return tuple(sorted(names if trusted else [*names, *self.silent]))

    def __str__(self) -> str:
        parts = [f"{', '.join(side.names)}: {side.state}" for side in self.sides]
        parts += [f"not compared: {', '.join(self.silent)}"] if self.silent else []
        if self.further and self.majority:
            parts.append(
                f"{', '.join(self.further)} came further than {', '.join(self.majority.names)}, which may have lost"
                " acknowledged writes: no API server stays published in DNS"
            )
        return "; ".join(parts)


Comparison = Agree | NotComparable | Disagree


def judge(witnesses: Sequence[Witness], absent: Collection[str] = ()) -> Comparison:
    """Compare the voters' reports. `absent` are those that did not answer; learners are left out."""
    voters = sorted((each for each in witnesses if not each.learner), key=lambda each: each.name)
    missing = [f"{', '.join(sorted(absent))} did not answer"] if absent else []
    for compare in (_by_cluster, _by_progress, _by_members, _by_hash):
        why_not, states = compare(voters)
        if len(set(states.values())) > 1:
            silent = sorted({*absent, *(each.name for each in voters)} - states.keys())
            found = Disagree(sides=_sides(states), silent=tuple(silent))
            return replace(found, further=further(voters, found.majority.names if found.majority else ()))
        missing += [why_not] if why_not else []
    return NotComparable("; ".join(missing)) if missing or not voters else Agree()


def further(voters: Sequence[Witness], majority: Collection[str]) -> tuple[str, ...]:
    """Voters outside of a majority that hold writes which the majority lost.

    The voter's first status is compared with the majority's last one, so a delay cannot explain the difference. Either
    the voter had applied log entries that no member of the majority has applied yet, although an entry is applied only
    once a majority has it. Or it has a higher revision than they have after fewer entries, and makes no progress: its
    log does not continue theirs. A voter that keeps up with them and has a higher revision has applied entries twice;
    that is an error of this voter and no evidence against the majority.
    """
    inside = [each for each in voters if each.name in majority and each.looks]
    if not inside:
        return ()
    applied = max(each.looks[-1].applied for each in inside)
    revision = max(each.looks[-1].revision for each in inside)
    level = min(each.looks[0].applied for each in inside)

    def is_further(each: Witness) -> bool:
        first, last = each.looks[0], each.looks[-1]
        stands_still = first == last and last.applied < level
        return first.applied > applied or (stands_still and first.revision > revision)

    return tuple(sorted(each.name for each in voters if each.looks and each.name not in majority and is_further(each)))


Compared = tuple[str, dict[str, str]]
"""Which voters could not be compared and why, and the state of the others by name."""


def _by_cluster(voters: Sequence[Witness]) -> Compared:
    return "", {each.name: f"cluster {each.cluster_id:x}" for each in voters}


def _by_progress(voters: Sequence[Witness]) -> Compared:
    """A voter that has applied as much of the log as another had earlier cannot be at a lower revision now."""
    reached, level = _level(voters)
    states: dict[str, str] = {}
    highest = -1
    for each in sorted(level, key=lambda each: each.looks[0].revision):
        first, last = each.looks[0].revision, each.looks[-1].revision
        if first > highest:
            group = f"revision {first} after entry {reached} of the log"
        highest = max(highest, last)
        states[each.name] = group
    behind = [each.name for each in voters if each.name not in states]
    return (f"{', '.join(behind)} did not keep up" if behind else ""), states


def _by_members(voters: Sequence[Witness]) -> Compared:
    """Compare only voters that have kept up: the list of one that lags is old, not wrong."""
    _, level = _level(voters)
    lists = {list_: number for number, list_ in enumerate(dict.fromkeys(each.membership for each in level), start=1)}
    states = {each.name: f"list {lists[each.membership]}, of {len(each.members)} members" for each in level}
    return "", states  # `_by_progress` has reported those that did not keep up


def _level(voters: Sequence[Witness]) -> tuple[int, list[Witness]]:
    """The highest index that any voter had applied, and the voters that had applied it a moment later."""
    steady = [each for each in voters if len(each.looks) == LOOKS and _is_steady(each.looks)]
    reached = max((each.looks[1].applied for each in steady), default=0)
    return reached, [each for each in steady if each.looks[2].applied >= reached]


def _is_steady(looks: Sequence[Progress]) -> bool:
    """False for a member that was restarted in between: it goes back and replays its log."""
    return all(a.revision <= b.revision and a.applied <= b.applied for a, b in pairwise(looks))


def _by_hash(voters: Sequence[Witness]) -> Compared:
    """Compare the largest group of voters with the same revision and compaction."""
    known = {each.name: each.hashed for each in voters if each.hashed is not None}
    groups = Counter((each.revision, each.compacted) for each in known.values())
    if not groups:
        return ("no hash could be had" if len(voters) > 1 else ""), {}
    most = max(groups, key=lambda group: (groups[group], group))
    states = {
        name: f"hash {each.hash:08x} at revision {each.revision}, compacted up to {each.compacted}"
        for name, each in known.items()
        if (each.revision, each.compacted) == most
    }
    others = [each.name for each in voters if each.name not in states]
    return (f"{', '.join(others)}: no hash after the same compaction" if others else ""), states


def _sides(states: dict[str, str]) -> tuple[Side, ...]:
    names: dict[str, list[str]] = {}
    for name in sorted(states):
        names.setdefault(states[name], []).append(name)
    sides = [Side(tuple(each), state) for state, each in names.items()]
    return tuple(sorted(sides, key=lambda side: (-len(side.names), side.names)))


@dataclass(frozen=True, slots=True)
class Suspicion:
    """The result of the comparisons so far: a difference raises the alarm only if three in a row show one.

    A comparison that could not be made neither counts nor resets. A voter that is silent in one comparison may have
    been on the majority's side in another, so the comparison with the fewest silent voters is kept. One with evidence
    against the majority takes precedence: a majority that goes on writing soon overtakes the member it left behind.
    """

    differed: int = 0
    clearest: Disagree | None = None

    @property
    def alarm(self) -> Disagree | None:
        """The clearest disagreement, once enough comparisons in a row have found one."""
        return self.clearest if self.differed >= ALARM_AFTER else None

    def feed(self, result: Comparison) -> Suspicion:
        match result:
            case Agree():
                return Suspicion()
            case NotComparable():
                return self
            case Disagree():
                known = self.clearest
                clearest = result if known is None or _clarity(result) >= _clarity(known) else known
                return Suspicion(min(self.differed + 1, ALARM_AFTER), clearest)


def _clarity(result: Disagree) -> tuple[bool, int]:
    return bool(result.further), -len(result.silent)
