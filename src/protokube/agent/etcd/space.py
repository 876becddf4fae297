"""Heal an etcd cluster that raised an alarm: compact, defragment our own member in its turn, clear the alarm.

A full etcd grants no lease, so the election of masters by leases may have ended. Two other things are unique: etcd's
leader, whose holder acts for the whole cluster, and the record of the remedy in the state store, which is only written
over exactly what was read and says whose turn it is. Each master defragments its own member alone. See
docs/decisions/0017-full-etcd.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from protokube.agent.cache import Confirmed, StepCache
from protokube.agent.etcd import generations
from protokube.agent.etcd.spacewatch import Job, Own, Sight, SpaceWatch
from protokube.agent.links import is_linked
from protokube.agent.world import Home, Turn
from protokube.errors import Refused, TryLater
from protokube.members.alarms import Alarm, AlarmKind
from protokube.members.remedy import Remedy, decode, encode
from protokube.members.space import (
    FULL,
    Compact,
    Defragment,
    Disarm,
    MoveLeader,
    NeedsPerson,
    Nothing,
    Reading,
    Space,
    Wait,
    figures,
    in_force,
    megabytes,
    plan,
)
from protokube.store import AlreadyThere, NotThere, Stored, layout

STEP = "space"
QUOTA = "quota-backend-bytes"


@dataclass(slots=True)
class SpaceCache(StepCache):
    versions: dict[str, Confirmed[str]] = field(default_factory=dict)
    """By etcd cluster: the version of the remedy's record, "" for none, and when it was first seen. Forgotten, it is
    first seen later, and a look at the members has to be newer still."""


def sync(turn: Turn) -> None:
    watch = turn.world.space
    if watch is None:
        return
    served = {home.etcd.key: home for home in turn.homes if is_linked(turn, home)}
    watch.hold({key: Own(home.member.name, home.point) for key, home in served.items()})
    for key, home in served.items():
        with turn.reported(STEP, key):
            _one(turn, watch, home)


def is_full(turn: Turn) -> bool:
    """Whether the etcd cluster that holds the masters' leases is known to refuse new ones."""
    watch = turn.world.space
    sight = watch.sight(turn.wanted.etcd[0].key) if watch is not None else None
    return sight is not None and any(each.kind is AlarmKind.NOSPACE for each in sight.alarms)


def _one(turn: Turn, watch: SpaceWatch, home: Home) -> None:
    key = home.etcd.key
    job = watch.job(key)
    if job is not None and not job.ended:
        turn.waiting(STEP, key, job.what)
        return
    if job is not None:
        _collect(turn, key, job)  # not over before the record says so: without a store the next round tries again
        watch.collected(key)
        return  # what is seen now may still be from before
    sight = watch.sight(key)
    if sight is None:
        return
    if not sight.alarms:
        _warn(turn, home, sight)
        return
    stored = _stored(turn, key)
    if not _is_newer(turn, key, sight, stored):
        watch.look_again(key)
        turn.waiting(STEP, key, "the members are asked again, since the record of the remedy changed")
        return
    space = _space(turn, watch, home, sight, stored)
    _carry_out(turn, watch, home, space, stored)


def _is_newer(turn: Turn, key: str, sight: Sight, stored: Stored | None) -> bool:
    """Whether the members were asked after the record came to say what it says: another master may have acted."""
    versions = turn.world.memory.of(SpaceCache).versions
    version = stored.version if stored is not None else ""
    known = versions.get(key)
    if known is None or known.value != version:
        known = versions[key] = Confirmed(version, turn.world.clock.monotonic())
    return sight.when >= known.when


def _collect(turn: Turn, key: str, job: Job) -> None:
    if isinstance(job.error, Refused):
        turn.report.needs_a_person(STEP, job.error, key)
    elif job.error is not None:
        turn.waiting(STEP, key, f"{job.what} failed and is tried again: {job.error.message}")
    elif not job.succeeded:
        turn.report.broken(STEP, f"{job.what}: its thread ended without a result; see the agent's log")
    else:
        stored = _stored(turn, key) if job.after is not None else None
        if stored is not None and job.after is not None and _decoded(stored) == job.before:
            _write(turn, key, stored, job.after)
        turn.report.done(STEP, job.done, key)


def _space(turn: Turn, watch: SpaceWatch, home: Home, sight: Sight, stored: Stored | None) -> Space:
    etcd = home.etcd
    quotas = {each.name: int(each.settings.get(QUOTA) or 0) for each in etcd.members}
    return Space(
        members=sight.members,
        readings={
            member: Reading(
                leader=each.leader, term=each.raft_term, applied=each.applied_index, size=each.db_size,
                in_use=each.db_size_in_use, version=each.version, learner=each.learner,
            )
            for member, each in sight.statuses.items()
        },
        alarms=sight.alarms,
        quotas={each.id: _quota(quotas.get(each.name, 0), sight, each.id) for each in sight.members},
        own=sight.own.member_id,
        own_free=sight.free,
        may_compact=etcd.compact,
        samples=watch.samples(etcd.key),
        record=_decoded(stored) if stored is not None else None,
        now=turn.world.clock.now(),
    )  # fmt: skip


def _quota(configured: int, sight: Sight, member: int) -> int:
    """What the member itself reports is in force; an etcd before 3.6 reports nothing."""
    status = sight.statuses.get(member)
    return status.quota if status is not None and status.quota else configured


def _carry_out(turn: Turn, watch: SpaceWatch, home: Home, space: Space, stored: Stored | None) -> None:
    key, own, etcd = home.etcd.key, home.member.name, watch.etcd[home.etcd.key]
    match plan(space):
        case Nothing():
            return
        case Compact(revision=revision, before=before, after=after):
            _begin(turn, key, stored, before)
            job = Job(f"compacting up to revision {revision}", f"compacted up to revision {revision}", before, after)
            _start(turn, watch, key, job, lambda: etcd.compact(revision))
        case Defragment(before=before, after=after):
            _begin(turn, key, stored, before)
            job = Job(f"defragmenting {own}", f"defragmented {own}", before, after)
            _start(turn, watch, key, job, lambda: etcd.defragment(own))
        case MoveLeader(target=target, before=before):
            _begin(turn, key, stored, before)
            name = space.name(target)
            job = Job(f"moving leadership from {own} to {name}", f"{name} leads now, no longer {own}", None, None)
            _start(turn, watch, key, job, lambda: etcd.move_leader(own, target))
        case Disarm(alarms=alarms, before=ended):
            if ended is not None:
                _begin(turn, key, stored, ended)
            names = _named(space)
            job = Job(f"clearing {names}", f"takes writes again: {names} cleared; {figures(space)}", None, None)
            _start(turn, watch, key, job, lambda: _disarm(etcd.disarm, alarms))
        case Wait(why):
            turn.waiting(STEP, key, f"out of space ({_named(space)}): {why}")
        case NeedsPerson() as found:
            _person(turn, watch, key, space, found)


def _start(turn: Turn, watch: SpaceWatch, key: str, job: Job, work: Callable[[], None]) -> None:
    turn.waiting(STEP, key, job.what)
    watch.start(key, job, work)


def _disarm(disarm: Callable[[Alarm], None], alarms: tuple[Alarm, ...]) -> None:
    for each in alarms:
        disarm(each)


def _person(turn: Turn, watch: SpaceWatch, key: str, space: Space, found: NeedsPerson) -> None:
    """Reported once, by the master that holds the leader; by all if there is none, and of our own volume by us."""
    if not space.directs and space.leader and not found.mine:
        leader = space.name(space.leader)
        turn.waiting(STEP, key, f"{_named(space)}: the master that holds the leader, {leader}, reports what to do")
        return
    filled = "; ".join(f"{each.prefix}: {each.keys} keys, about {megabytes(each.bytes)}" for each in watch.shares(key))
    saw = figures(space) + (f"; most of it: {filled}" if filled else "")
    turn.report.needs_a_person(STEP, Refused(f"{_named(space)}: {found.why}", saw=saw, hint=found.hint), key)


def _named(space: Space) -> str:
    return ", ".join(sorted(f"{each.name} of {space.name(each.member)}" for each in space.alarms))


def _warn(turn: Turn, home: Home, sight: Sight) -> None:
    quota = in_force(sight.own.quota or int(home.member.settings.get(QUOTA) or 0))
    if sight.own.db_size >= FULL * quota:
        used = f"{megabytes(sight.own.db_size)}, {megabytes(sight.own.db_size_in_use)} of it in use"
        turn.report.warn(
            STEP,
            f"the database of {home.name} has {used}; at its quota of {megabytes(quota)} etcd takes no more writes",
            home.etcd.key,
            "delete what is not needed, or raise quotaBackendBytes",
        )


def _stored(turn: Turn, key: str) -> Stored | None:
    try:
        return turn.world.store.read(layout.etcd_maintenance(turn.wanted.cluster, key))
    except NotThere:
        return None


def _decoded(stored: Stored) -> Remedy:
    record = decode(stored.data)
    if record is None:
        raise Refused(
            f"{stored.path} in the state store cannot be read, so nobody knows whether a member is being defragmented",
            hint="delete it if no member is",
        )
    return record


def _begin(turn: Turn, key: str, stored: Stored | None, before: Remedy) -> None:
    """Have the record in force before anything is done; TryLater if another master was faster."""
    if stored is None or _decoded(stored) != before:
        _write(turn, key, stored, before)


def _write(turn: Turn, key: str, stored: Stored | None, record: Remedy) -> None:
    path = layout.etcd_maintenance(turn.wanted.cluster, key)
    if stored is None:
        try:
            generations.create_beside(turn, key, path, encode(record))
        except AlreadyThere as why:
            raise TryLater("another master has begun to heal it") from why
    else:
        turn.world.store.replace(path, encode(record), stored.version)
