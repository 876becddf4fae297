"""Do the members of one etcd cluster hold the same data?

`/health` does not say: two clusters under one set of names can all be healthy, and a member can lose writes without
noticing. What is hard is to tell a difference from a delay. A voter that is behind, or has compacted more than the
others, is not compared: it is silent this time. Two things cannot come from a delay: another hash of the same revision
after the same compaction, and fewer revisions after as many entries of the log. The second finds what the first cannot:
sides that were compacted differently never give hashes that could be compared.

The larger side is not the right one by its size alone. An older copy of a disk and a member that missed writes form a
majority too; a member outside it that has come further then holds writes that were acknowledged and that the majority
lost. `further` looks for such a member, and with one of them no side stays in service.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from protokube.members.start import Listed

LOOKS = 4
"""At everybody's progress: the revision, then what is to be reached, whether it was reached, and the revision again."""
ALARM_AFTER = 3


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a member is, in its answer to one question."""

    revision: int
    applied: int
    """The last entry of the log that it carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashed:
    """The hash of all its keys at a revision."""

    hash: int
    revision: int
    compacted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """What one member says of itself and of the others."""

    name: str
    cluster_id: int
    members: tuple[Listed, ...]
    """As it listed them after the third look."""
    looks: tuple[Progress, ...]
    hashed: Hashed | None
    """At the revision that was asked of all; None if it had none to give."""
    learner: bool = False

    @property
    def membership(self) -> tuple[tuple[int, bool, tuple[str, ...]], ...]:
        """Who takes part. Names and client URLs come from the members themselves, and may come later."""
        return tuple(sorted((each.id, each.learner, tuple(sorted(each.peer_urls))) for each in self.members))


@dataclass(frozen=True, slots=True)
class Agree:
    """Every voter answered, and all say the same."""


@dataclass(frozen=True, slots=True)
class NotComparable:
    """Nothing speaks against them, but not everybody could be compared."""

    why: str


@dataclass(frozen=True, slots=True)
class Side:
    """Voters that say the same."""

    names: tuple[str, ...]
    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagree:
    """There are several sides."""

    sides: tuple[Side, ...]
    """The largest first."""
    silent: tuple[str, ...] = ()
    """Voters that did not answer, or could not be compared: they may be on any side."""
    further: tuple[str, ...] = ()
    """Voters outside of the majority that have come further than it: it lost what they hold."""

    @property
    def majority(self) -> Side | None:
        """The side that more than half of all voters are on; silent ones count as voters."""
        total = sum(len(side.names) for side in self.sides) + len(self.silent)
        return self.sides[0] if 2 * len(self.sides[0].names) > total else None

    @property
    def out_of_service(self) -> tuple[str, ...]:
        """Whose API servers must not serve: the minority; everybody if no majority can be trusted."""
        trusted = self.majority is not None and not self.further
        others = self.sides[1:] if trusted else self.sides
        names = [name for side in others for name in side.names]
        return tuple(sorted(names if trusted else [*names, *self.silent]))

    def __str__(self) -> str:
        parts = [f"{', '.join(side.names)}: {side.told}" for side in self.sides]
        parts += [f"not compared: {', '.join(self.silent)}"] if self.silent else []
        if self.further and self.majority:
            parts.append(
                f"{', '.join(self.further)} came further than {', '.join(self.majority.names)}, which may have lost"
                " acknowledged writes: no API server stays in the names"
            )
        return "; ".join(parts)


Comparison = Agree | NotComparable | Disagree


def judge(witnesses: Sequence[Witness], absent: Collection[str] = ()) -> Comparison:
    """Compare what the voters say. `absent` are those that did not answer; learners are left out."""
    voters = sorted((each for each in witnesses if not each.learner), key=lambda each: each.name)
    missing = [f"{', '.join(sorted(absent))} did not answer"] if absent else []
    for compare in (_by_cluster, _by_progress, _by_members, _by_hash):
        why_not, told = compare(voters)
        if len(set(told.values())) > 1:
            silent = sorted({*absent, *(each.name for each in voters)} - told.keys())
            found = Disagree(sides=_sides(told), silent=tuple(silent))
            return replace(found, further=further(voters, found.majority.names if found.majority else ()))
        missing += [why_not] if why_not else []
    return NotComparable("; ".join(missing)) if missing or not voters else Agree()


def further(voters: Sequence[Witness], majority: Collection[str]) -> tuple[str, ...]:
    """Voters outside of a majority that hold what it lost. Their first look counts, and its last: no delay explains it.

    Either a voter had carried out entries of the log that nobody of the majority has yet, although an entry is carried
    out only after a majority has it. Or it has more revisions than they have after fewer entries, and stands still: its
    log cannot go on with theirs. One that goes on with them and has more revisions carried out entries twice; that is
    its own fault, and no evidence.
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


Told = tuple[str, dict[str, str]]
"""Who could not be compared and why, and what the others say, by name."""


def _by_cluster(voters: Sequence[Witness]) -> Told:
    return "", {each.name: f"cluster {each.cluster_id:x}" for each in voters}


def _by_progress(voters: Sequence[Witness]) -> Told:
    """Whoever has carried out as much of the log as another had before cannot be at an earlier revision now."""
    reached, level = _level(voters)
    told: dict[str, str] = {}
    highest = -1
    for each in sorted(level, key=lambda each: each.looks[0].revision):
        first, last = each.looks[0].revision, each.looks[-1].revision
        if first > highest:
            group = f"revision {first} after entry {reached} of the log"
        highest = max(highest, last)
        told[each.name] = group
    behind = [each.name for each in voters if each.name not in told]
    return (f"{', '.join(behind)} did not keep up" if behind else ""), told


def _by_members(voters: Sequence[Witness]) -> Told:
    """Among those who have kept up: an old list is not a wrong one."""
    _, level = _level(voters)
    lists = {list_: number for number, list_ in enumerate(dict.fromkeys(each.membership for each in level), start=1)}
    told = {each.name: f"list {lists[each.membership]}, of {len(each.members)} members" for each in level}
    return "", told  # who did not keep up was said before


def _level(voters: Sequence[Witness]) -> tuple[int, list[Witness]]:
    """The furthest entry that anybody had carried out, and who had carried it out a moment later."""
    steady = [each for each in voters if len(each.looks) == LOOKS and _is_steady(each.looks)]
    reached = max((each.looks[1].applied for each in steady), default=0)
    return reached, [each for each in steady if each.looks[2].applied >= reached]


def _is_steady(looks: Sequence[Progress]) -> bool:
    """A member that was restarted in between goes back and replays its log."""
    return all(a.revision <= b.revision and a.applied <= b.applied for a, b in pairwise(looks))


def _by_hash(voters: Sequence[Witness]) -> Told:
    """Among the most voters that have the same revision and compaction."""
    known = {each.name: each.hashed for each in voters if each.hashed is not None}
    groups = Counter((each.revision, each.compacted) for each in known.values())
    if not groups:
        return ("no hash could be had" if len(voters) > 1 else ""), {}
    most = max(groups, key=lambda group: (groups[group], group))
    told = {
        name: f"hash {each.hash:08x} at revision {each.revision}, compacted up to {each.compacted}"
        for name, each in known.items()
        if (each.revision, each.compacted) == most
    }
    others = [each.name for each in voters if each.name not in told]
    return (f"{', '.join(others)}: no hash after the same compaction" if others else ""), told


def _sides(told: dict[str, str]) -> tuple[Side, ...]:
    names: dict[str, list[str]] = {}
    for name in sorted(told):
        names.setdefault(told[name], []).append(name)
    sides = [Side(tuple(each), what) for what, each in names.items()]
    return tuple(sorted(sides, key=lambda side: (-len(side.names), side.names)))


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What the comparisons so far amount to: a difference counts only if three in a row show one.

    A comparison that could not be made says nothing, neither for nor against. A voter that is silent in one of them may
    have been on the majority's side in another, so what is kept is the one that heard the most. One with evidence
    against the majority is kept before all others: a majority that writes on soon passes the member it left behind.
    """

    differed: int = 0
    clearest: Disagree | None = None

    @property
    def alarm(self) -> Disagree | None:
        """The sides, once it is certain that there are several."""
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
