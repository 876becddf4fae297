"""Handle an alarm of an etcd cluster: compact, defragment our own member in its turn, disarm the alarm.

A full etcd grants no lease, so there may be no elected master. Two other things are unique: etcd's leader, whose holder
acts for the whole cluster, and the record of the remedy in the state store, which is written by compare-and-swap and
names the member whose turn it is. Each master defragments only its own member. See docs/decisions/0017-full-etcd.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from protokube.agent.cache import Confirmed, StepCache
from protokube.agent.etcd import generations
from protokube.agent.links import is_linked
from protokube.agent.maintenance import Job, Maintenance, Own, Sight
from protokube.agent.round import MountedVolume, Round
from protokube.errors import Refused, TryLater
from protokube.members.alarms import Alarm, AlarmKind
from protokube.members.remedy import Remedy, decode, encode
from protokube.members.space import FULL, figures, megabytes, plan
from protokube.members.space_values import (
    Compact,
    Defragment,
    Disarm,
    MoveLeader,
    NeedsPerson,
    Nothing,
    Reading,
    Space,
    Wait,
    in_force,
)
from protokube.store import AlreadyThere, NotThere, Stored, layout

STEP = "space"
QUOTA = "quota-backend-bytes"


@dataclass(slots=True)
class SpaceCache(StepCache):
    versions: dict[str, Confirmed[str]] = field(default_factory=dict)
    """By etcd cluster: the version of the remedy's record, "" for none, and when it was first seen. If this is
    lost, the version is first seen later, and the members must be observed after that."""


def sync(round_: Round) -> None:
    watch = round_.edges.space
    if watch is None:
        return
    served = {disk.etcd.key: disk for disk in round_.mounted if is_linked(round_, disk)}
    watch.hold({key: Own(disk.member.name, disk.point) for key, disk in served.items()})
    for key, disk in served.items():
        with round_.reported(STEP, key):
            _one(round_, watch, disk)


def is_full(round_: Round) -> bool:
    """Whether the etcd cluster that holds the masters' leases is known to refuse new ones."""
    watch = round_.edges.space
    sight = watch.sight(round_.wanted.etcd[0].key) if watch is not None else None
    return sight is not None and any(each.kind is AlarmKind.NOSPACE for each in sight.alarms)


def _one(round_: Round, watch: Maintenance, disk: MountedVolume) -> None:
    key = disk.etcd.key
    job = watch.job(key)
    if job is not None and not job.ended:
        round_.waiting(STEP, key, job.what)
        return
    if job is not None:
        _collect(round_, key, job)  # done only once it is in the record: without a store the next round tries again
        watch.collected(key)
        return  # the current observation may be older than the job
    sight = watch.sight(key)
    if sight is None:
        return
    if not sight.alarms:
        _warn(round_, disk, sight)
        return
    stored = _stored(round_, key)
    if not _is_newer(round_, key, sight, stored):
        watch.look_again(key)
        round_.waiting(STEP, key, "the members are asked again, since the record of the remedy changed")
        return
    space = _space(round_, watch, disk, sight, stored)
    _carry_out(round_, watch, disk, space, stored)


def _is_newer(round_: Round, key: str, sight: Sight, stored: Stored | None) -> bool:
    """Whether the members were observed after the record last changed: another master may have acted in between."""
    versions = round_.edges.cache.of(SpaceCache).versions
    version = stored.version if stored is not None else ""
    known = versions.get(key)
    if known is None or known.value != version:
        known = versions[key] = Confirmed(version, round_.edges.clock.monotonic())
    return sight.when >= known.when


def _collect(round_: Round, key: str, job: Job) -> None:
    if isinstance(job.error, Refused):
        round_.report.needs_a_person(STEP, job.error, key)
    elif job.error is not None:
        round_.waiting(STEP, key, f"{job.what} failed and is tried again: {job.error.message}")
    elif not job.succeeded:
        round_.report.broken(STEP, f"{job.what}: its thread ended without a result; see the agent's log")
    else:
        stored = _stored(round_, key) if job.after is not None else None
        if stored is not None and job.after is not None and _decoded(stored) == job.before:
            _write(round_, key, stored, job.after)
        round_.report.done(STEP, job.done, key)


def _space(round_: Round, watch: Maintenance, disk: MountedVolume, sight: Sight, stored: Stored | None) -> Space:
    etcd = disk.etcd
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
        now=round_.edges.clock.now(),
    )  # fmt: skip


def _quota(configured: int, sight: Sight, member: int) -> int:
    """The quota that the member itself reports; an etcd before 3.6 reports none."""
    status = sight.statuses.get(member)
    return status.quota if status is not None and status.quota else configured


def _carry_out(round_: Round, watch: Maintenance, disk: MountedVolume, space: Space, stored: Stored | None) -> None:
    key, own, etcd = disk.etcd.key, disk.member.name, watch.etcd[disk.etcd.key]
    match plan(space):
        case Nothing():
            return
        case Compact(revision=revision, before=before, after=after):
            _begin(round_, key, stored, before)
            job = Job(f"compacting up to revision {revision}", f"compacted up to revision {revision}", before, after)
            _start(round_, watch, key, job, lambda: etcd.compact(revision))
        case Defragment(before=before, after=after):
            _begin(round_, key, stored, before)
            job = Job(f"defragmenting {own}", f"defragmented {own}", before, after)
            _start(round_, watch, key, job, lambda: etcd.defragment(own))
        case MoveLeader(target=target, before=before):
            _begin(round_, key, stored, before)
            name = space.name(target)
            job = Job(f"moving leadership from {own} to {name}", f"{name} leads now, no longer {own}", None, None)
            _start(round_, watch, key, job, lambda: etcd.move_leader(own, target))
        case Disarm(alarms=alarms, before=ended):
            if ended is not None:
                _begin(round_, key, stored, ended)
            names = _named(space)
            job = Job(f"clearing {names}", f"takes writes again: {names} cleared; {figures(space)}", None, None)
            _start(round_, watch, key, job, lambda: _disarm(etcd.disarm, alarms))
        case Wait(why):
            round_.waiting(STEP, key, f"out of space ({_named(space)}): {why}")
        case NeedsPerson() as found:
            _person(round_, watch, key, space, found)


def _start(round_: Round, watch: Maintenance, key: str, job: Job, work: Callable[[], None]) -> None:
    round_.waiting(STEP, key, job.what)
    watch.start(key, job, work)


def _disarm(disarm: Callable[[Alarm], None], alarms: tuple[Alarm, ...]) -> None:
    for each in alarms:
        disarm(each)


def _person(round_: Round, watch: Maintenance, key: str, space: Space, found: NeedsPerson) -> None:
    """Reported by the master that holds the leader; by all if there is none; by us if it concerns our own volume."""
    if not space.directs and space.leader and not found.mine:
        leader = space.name(space.leader)
        round_.waiting(STEP, key, f"{_named(space)}: the master that holds the leader, {leader}, reports what to do")
        return
    filled = "; ".join(f"{each.prefix}: {each.keys} keys, about {megabytes(each.bytes)}" for each in watch.shares(key))
    saw = figures(space) + (f"; most of it: {filled}" if filled else "")
    round_.report.needs_a_person(STEP, Refused(f"{_named(space)}: {found.why}", saw=saw, hint=found.hint), key)


def _named(space: Space) -> str:
    return ", ".join(sorted(f"{each.name} of {space.name(each.member)}" for each in space.alarms))


def _warn(round_: Round, disk: MountedVolume, sight: Sight) -> None:
    quota = in_force(sight.own.quota or int(disk.member.settings.get(QUOTA) or 0))
    if sight.own.db_size >= FULL * quota:
        used = f"{megabytes(sight.own.db_size)}, {megabytes(sight.own.db_size_in_use)} of it in use"
        round_.report.warn(
            STEP,
            f"the database of {disk.name} has {used}; at its quota of {megabytes(quota)} etcd takes no more writes",
            disk.etcd.key,
            "delete what is not needed, or raise quotaBackendBytes",
        )


def _stored(round_: Round, key: str) -> Stored | None:
    try:
        return round_.edges.store.read(layout.etcd_maintenance(round_.wanted.cluster, key))
    except NotThere:
        return None


def _decoded(stored: Stored) -> Remedy:
    record = decode(stored.data)
    if record is None:
        raise Refused(
            f"{stored.path} in the state store cannot be read, so a member may be being defragmented",
            hint="delete it if no member is",
        )
    return record


def _begin(round_: Round, key: str, stored: Stored | None, before: Remedy) -> None:
    """Write the record before anything else is done; TryLater if another master was faster."""
    if stored is None or _decoded(stored) != before:
        _write(round_, key, stored, before)


def _write(round_: Round, key: str, stored: Stored | None, record: Remedy) -> None:
    path = layout.etcd_maintenance(round_.wanted.cluster, key)
    if stored is None:
        try:
            generations.create_record(round_, key, path, encode(record))
        except AlreadyThere as why:
            raise TryLater("another master has begun to heal it") from why
    else:
        round_.edges.store.replace(path, encode(record), stored.version)
