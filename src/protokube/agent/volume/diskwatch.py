"""Watch the file systems that are mounted here, and take away those that broke.

On a file system that turned read-only etcd is restarted for ever, and one whose writes fail leaves in memory what is on
no disk. So the member is stopped and the volume unmounted, never lazily. Then it goes the way of every volume that is
mounted: checked by e2fsck, compared with its records, its epoch raised. How often that is tried, `diskfaults` decides.

Each round looks at what costs nothing. A write is tried in a child, once a minute, or soon after etcd stopped
answering.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from protokube.agent.cache import StepCache
from protokube.agent.round import Round
from protokube.agent.volume import diskfaults, leaving, mounted_volumes, verified
from protokube.host import Done, Failed, FileSystem, Mount, Result, Unwritable, WriteTest
from protokube.members.diskfaults import Room, Signs, Writing, fault_in, room_in

STEP = diskfaults.STEP
EVERY = 60.0
SOON = 5.0
"""Seconds between two tests of a file system whose etcd does not answer."""


@dataclass(frozen=True, slots=True)
class WriteTested:
    """The last write to a mounted file system that was made to see whether it takes any."""

    when: float
    writing: Writing
    detail: str = ""
    killed: bool = False
    """It took too long; nothing is known but that, since this machine may have stood still."""


@dataclass(slots=True)
class DiskWatchCache(StepCache):
    """Forgotten, each file system is tested once more."""

    tests: dict[str, WriteTested] = field(default_factory=dict)
    """By volume: what came of the last one."""
    running: dict[str, WriteTest] = field(default_factory=dict)
    """By volume."""

    def forget(self, volume: str) -> None:
        """A later mount may look just like this one, also to the kernel; nothing that was found out is about it."""
        self.tests.pop(volume, None)
        self.running.pop(volume, None)


def sync(round_: Round) -> None:
    held = mounted_volumes.mounted(round_.edges)
    cache = round_.edges.cache.of(DiskWatchCache)
    for volume in (cache.tests.keys() | cache.running.keys()) - held.keys():
        cache.forget(volume)
    if round_.volumes is not None:
        ours = {each.id for each in round_.volumes if each.attached_to == round_.edges.me.id}
        diskfaults.forget_others(round_.edges, ours | held.keys())
    for volume, mount in held.items():
        if volume not in round_.leaving:
            with round_.reported(STEP, volume):
                _one(round_, volume, mount)
    leaving.forget_kept(round_)


def _one(round_: Round, volume: str, mount: Mount) -> None:
    edges = round_.edges
    try:
        system = edges.disks.file_system(mount)
    except OSError as error:
        if error.errno not in mounted_volumes.DISK_ERRORS:
            return  # it was unmounted a moment ago
        round_.disk_errors.setdefault(volume, (error.strerror or str(error)).lower())
        system = FileSystem(errors=0, free=0, size=0)
    noted = diskfaults.noted_on(edges, volume, mount)
    # one that is being left is not written to again: each test of a disk that hangs is one more child that stays
    tested = _tested(round_, volume, mount) if not noted and verified.is_noted(edges, volume, mount) else None
    signs = Signs(
        options=mount.options,
        errors=system.errors,
        writing=tested.writing if tested else Writing.UNTRIED,
        detail=tested.detail if tested else "",
        unreadable=round_.disk_errors.get(volume, ""),
    )
    fault = noted or fault_in(signs)
    if not fault:
        _report_room(round_, volume, system, signs.writing)
        return

    def note() -> None:
        diskfaults.note(edges, volume, fault, mount)
        edges.cache.of(DiskWatchCache).forget(volume)

    leaving.leave(round_, volume, _etcd_cluster(round_, volume), mount, f"its file system {fault}", STEP, note)


def _tested(round_: Round, volume: str, mount: Mount) -> WriteTested | None:
    """What came of the last write to this mount. A new one is started when it is due; a later round collects it."""
    edges, now = round_.edges, round_.edges.clock.monotonic()
    cache = edges.cache.of(DiskWatchCache)
    known = cache.tests.get(volume)
    if volume not in cache.running and _is_due(round_, volume, mount, known):
        cache.running[volume] = WriteTest(point=mount.point, number=mount.number, begun=now)
    if volume in cache.running and (result := edges.disks.run(cache.running[volume])) is not None:
        if not (isinstance(result, Failed) and result.overdue):  # such a one still runs
            del cache.running[volume]
        if (outcome := _outcome(result, now, known)) is not None:
            known = cache.tests[volume] = outcome
    return known


def _is_due(round_: Round, volume: str, mount: Mount, known: WriteTested | None) -> bool:
    if known is None or known.killed:
        return True
    passed = round_.edges.clock.monotonic() - known.when
    return passed >= EVERY or (passed >= SOON and _is_suspect(round_, volume, mount, known))


def _is_suspect(round_: Round, volume: str, mount: Mount, known: WriteTested) -> bool:
    """Whether something else went wrong that a broken disk would explain."""
    edges = round_.edges
    return (
        known.writing is Writing.NO_ROOM
        or volume in edges.cache.of(mounted_volumes.MountsCache).failed
        or not edges.disks.present(mount.number)
        or not _answers(round_, volume)
    )


def _answers(round_: Round, volume: str) -> bool:
    """Whether the etcd on this volume takes connections; as far as that is known, it does."""
    listed = round_.volume(volume)
    etcd = round_.wanted.etcd_cluster(listed.etcd_cluster) if listed else None
    member = etcd.member(listed.member) if etcd and listed else None
    return etcd is None or member is None or round_.edges.etcd[etcd.key].reachable(member.name)


def _outcome(result: Result, now: float, before: WriteTested | None) -> WriteTested | None:
    """None if the child could not even begin: that says nothing about the disk.

    A machine that stood still for a while finds its child late. A disk that hangs makes the next one late, too.
    """
    match result:
        case Done():
            return WriteTested(now, Writing.FINE)
        case Unwritable(why=why, full=full):
            return WriteTested(now, Writing.NO_ROOM if full else Writing.FAILED, why)
        case Failed(why=why, overdue=True):
            return WriteTested(now, Writing.HANGS, why)
        case Failed(why=why, killed=True):
            again = before is not None and before.killed
            return WriteTested(now, Writing.HANGS if again else Writing.UNTRIED, why, killed=True)
        case _:
            return None


def _etcd_cluster(round_: Round, volume: str) -> str:
    listed = round_.volume(volume)
    return listed.etcd_cluster if listed else ""


def _report_room(round_: Round, volume: str, system: FileSystem, writing: Writing) -> None:
    mebibytes = f"{system.free >> 20} of {system.size >> 20} MiB are free"
    match room_in(system.free, system.size, writing):
        case Room.NONE:
            round_.report.needs_a_person(
                STEP, f"its file system is full: {mebibytes}", volume, "free some room on it, or make the disk larger"
            )
        case Room.LITTLE:
            round_.report.warn(STEP, f"its file system is nearly full: {mebibytes}", volume)
        case Room.ENOUGH:
            pass
