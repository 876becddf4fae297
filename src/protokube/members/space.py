"""Decide the next step for an etcd cluster that raised an alarm, from what is observed now.

A full etcd (NOSPACE) is repaired in this order: compact old revisions, defragment one member after the other with the
leader last, clear the alarm. The hard part: a member does not answer while it is defragmented, so a second one at the
same time, or one while another voter is unhealthy, would cost the quorum. Every master computes this decision; the
record of the remedy (`members.remedy`) and the rule which master acts prevent two of them from acting at once.

How much of a database file is current data is known only after defragmentation: etcd counts pages that a compaction
freed as in use until its next write, and a full etcd takes none. So the first follower shows whether defragmenting the
others is worth it.
"""

from __future__ import annotations

from dataclasses import replace

from protokube.members.alarms import AlarmKind
from protokube.members.remedy import Remedy
from protokube.members.space_values import (
    Compact,
    Decision,
    Defragment,
    Disarm,
    MoveLeader,
    NeedsPerson,
    Nothing,
    Space,
    Wait,
)

FULL = 0.8
"""Share of its quota below which a database has room again, and above which the agent warns."""
OLD_ENOUGH = 600.0
"""Age in seconds of the newest revision to compact: readers and watchers keep more recent ones. Kubernetes itself keeps
five minutes."""
DAY = 86400.0
"""At most one remedy a day: if etcd is full again sooner, a person has to find the cause."""
SETTLING = 60.0
"""Seconds after a compaction in which followers still delete old revisions, so that sizes are not meaningful yet."""
ROOM = 1.2
"""Free bytes needed for each byte of the database file: defragmenting writes a second file beside it."""
MOST_BEHIND = 1000
"""Log entries by which a healthy voter may be behind another, since they are asked one after the other."""
SOUND = {(3, 4): 22, (3, 5): 6}
"""First patch releases in which an etcd that is killed during defragmentation loses no entries (etcd issue 14685)."""


def plan(space: Space) -> Decision:
    """The next step, for this master. At most one master gets a step to carry out."""
    if not space.alarms:
        return Nothing()
    if why := _not_ours(space):
        return why
    unseen = [each.name or f"{each.id:x}" for each in space.members if each.id not in space.readings]
    if unseen:
        return Wait(f"{', '.join(unseen)} must answer before anything is done about it")
    if not space.leader:
        return Wait("the members must follow one leader before anything is done about it")
    if all(each.size < FULL * space.quota(member) for member, each in space.readings.items()):
        return _disarm(space) if space.directs else _directors(space, "clears the alarm")
    return _hindrance(space) or _remedy(space)


def _disarm(space: Space) -> Disarm:
    record = space.record
    ended = record.with_end(space.now) if record is not None and not record.cleared else record
    return Disarm(space.alarms, before=ended)


def _not_ours(space: Space) -> NeedsPerson | None:
    """Alarms that the agents must not act on."""
    kinds = {each.kind for each in space.alarms}
    if AlarmKind.CORRUPT in kinds:
        names = ", ".join(space.name(each.member) for each in space.alarms if each.kind is AlarmKind.CORRUPT)
        return NeedsPerson(
            f"etcd found that the data of {names} differs from the others' and takes no writes",
            "nothing was changed; keep every disk as it is, compare with `protokube etcd members`, and replace that"
            " member; etcd takes writes again after `etcdctl alarm disarm`",
        )
    if AlarmKind.UNKNOWN in kinds:
        names = ", ".join(f"{each.name} of {space.name(each.member)}" for each in space.alarms)
        return NeedsPerson(f"etcd raised an alarm that is not known here: {names}", "see etcd's documentation of it")
    return None


def _hindrance(space: Space) -> Wait | NeedsPerson | None:
    """Why no member may be defragmented now."""
    old = sorted({each.version for each in space.readings.values() if not is_sound(each.version)})
    if old:
        return NeedsPerson(
            f"etcd {', '.join(old)} may lose data if it is killed while it is defragmented: not done unattended",
            "update etcd to 3.4.22, 3.5.6 or later; or compact, defragment one member after the other and clear the"
            " alarm with etcdctl",
        )
    learners = [space.name(each.id) for each in space.members if each.learner or space.readings[each.id].learner]
    if learners:
        return Wait(f"{', '.join(learners)} must become a voter before a member is defragmented")
    newest = max(each.applied for each in space.readings.values())
    terms = max(each.term for each in space.readings.values())
    behind = [
        space.name(member)
        for member, each in sorted(space.readings.items())
        if newest - each.applied > MOST_BEHIND or each.term != terms
    ]
    return Wait(f"{', '.join(behind)} must catch up before a member is defragmented") if behind else None


def _remedy(space: Space) -> Decision:
    began = _in_force(space)
    if began.cleared:
        return NeedsPerson(
            "it is full again less than a day after it was compacted and defragmented",
            "find what writes so much; delete keys or raise quotaBackendBytes. After a day the agents try again",
        )
    if space.may_compact and not began.revision:
        return _compact(space, began) or Wait(_when(space))
    if space.may_compact and not began.done and not began.turn and 0 <= space.now - began.compacted < SETTLING:
        return Wait("the members delete old revisions")
    still = [each for each in began.done if _is_full(space, each)]
    if any(space.readings[each].in_use >= FULL * space.quota(each) for each in still):
        return _crowded(space, began)
    # pages that were freed after a member's defragmentation are still in its file: defragment it again
    return _next_member(space, replace(began, done=tuple(each for each in began.done if each not in still)))


def _is_full(space: Space, member: int) -> bool:
    reading = space.readings.get(member)
    return reading is not None and reading.size >= FULL * space.quota(member)


def _in_force(space: Space) -> Remedy:
    """The record, or a new one if it is of an earlier remedy. Clocks of masters may be wrong: a record from the future
    counts, and a turn is kept whatever its age, since that member may be defragmented at this moment."""
    record = space.record
    if record is None:
        return Remedy(began=space.now)
    return record if space.now - record.began < DAY else Remedy(began=space.now, turn=record.turn)


def _compact(space: Space, began: Remedy) -> Compact | Wait | None:
    """Up to the newest revision that is old enough; None if none is known."""
    revision = max((each.revision for each in space.samples if each.age >= OLD_ENOUGH), default=0)
    if revision <= began.revision:
        return None
    if not space.directs:
        return _directors(space, "compacts old revisions")
    return Compact(revision, before=began, after=began.with_compaction(revision, space.now))


def _when(space: Space) -> str:
    oldest = max((each.age for each in space.samples), default=0.0)
    return (
        f"old revisions are compacted in {OLD_ENOUGH - oldest:.0f} s, once a revision is known that is 10 minutes old"
    )


def _crowded(space: Space, began: Remedy) -> Decision:
    """Defragmenting would not free enough space: the database is full of current data, or of revisions that may not be
    compacted."""
    if not space.may_compact:
        return NeedsPerson(
            "current data or old revisions fill it, and the agents may not compact it",
            "set maintenance.compact: true for this etcd cluster; or let its user compact, then delete keys that are"
            " not needed (etcd still takes deletes)",
        )
    # keys may have been deleted meanwhile: they leave the file only with the next compaction
    again = _compact(space, began) if not began.turn and space.now - began.compacted >= OLD_ENOUGH else None
    return again or NeedsPerson(
        "current data fills it, not old revisions",
        "delete keys that are not needed (etcd still takes deletes; they take effect within 20 minutes), or raise"
        " quotaBackendBytes",
    )


def _next_member(space: Space, began: Remedy) -> Decision:
    """Followers first, by name; the leader last, after it has transferred its leadership."""
    ids = [each.id for each in sorted(space.members, key=lambda each: (each.id == space.leader, each.name, each.id))]
    waiting = [each for each in ids if each not in began.done]
    member = began.turn if began.turn in ids else waiting[0]
    if member != space.own:
        return Wait(f"{space.name(member)} is defragmented first, by the master that holds it")
    reading = space.readings[member]
    if space.own_free < ROOM * reading.size:
        return NeedsPerson(
            f"{space.name(member)} cannot be defragmented: its volume has {megabytes(space.own_free)} free, and"
            f" {megabytes(int(ROOM * reading.size))} are needed",
            "remove what else lies on its volume, or enlarge it",
            mine=True,
        )
    mine = began.with_turn(member)
    others = [each for each in reversed(ids) if each != member]
    if member == space.leader and others:
        return MoveLeader(member, others[0], before=mine)
    return Defragment(member, before=mine, after=mine.with_done(member))


def _directors(space: Space, does: str) -> Wait:
    return Wait(f"the master that holds the leader, {space.name(space.leader)}, {does}")


def is_sound(version: str) -> bool:
    """Whether this etcd may be defragmented unattended."""
    parts = version.partition("-")[0].partition("+")[0].split(".")
    if len(parts) != 3 or not all(each.isdigit() for each in parts):
        return False
    major, minor, patch = (int(each) for each in parts)
    return (major, minor) > max(SOUND) or patch >= SOUND.get((major, minor), patch + 1)


def megabytes(count: float) -> str:
    return f"{count / 2**20:.1f} MiB" if count < 2**30 else f"{count / 2**30:.1f} GiB"


def figures(space: Space) -> str:
    """The databases, as numbers: `etcd-a 16.1 of 16.0 MiB, 15.9 in use`."""
    lines = []
    for each in sorted(space.members, key=lambda each: each.name):
        reading = space.readings.get(each.id)
        if reading is None:
            lines.append(f"{space.name(each.id)} does not answer")
            continue
        quota = space.quota(each.id)
        of = "no quota" if quota == float("inf") else f"a quota of {megabytes(quota)}"
        lines.append(
            f"{space.name(each.id)} {megabytes(reading.size)} of {of}, {megabytes(reading.in_use)} of it in use"
        )
    return "; ".join(lines)
