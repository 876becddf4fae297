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
from protokube.agent.volume import diskfaults, leaving, mounted_volumes, verified
from protokube.agent.world import Turn
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


def sync(turn: Turn) -> None:
    held = mounted_volumes.mounted(turn.world)
    cache = turn.world.memory.of(DiskWatchCache)
    for volume in (cache.tests.keys() | cache.running.keys()) - held.keys():
        cache.forget(volume)
    if turn.volumes is not None:
        ours = {each.id for each in turn.volumes if each.attached_to == turn.world.me.id}
        diskfaults.forget_others(turn.world, ours | held.keys())
    for volume, mount in held.items():
        if volume not in turn.leaving:
            with turn.reported(STEP, volume):
                _one(turn, volume, mount)
    leaving.forget_kept(turn)


def _one(turn: Turn, volume: str, mount: Mount) -> None:
    world = turn.world
    try:
        system = world.disks.file_system(mount)
    except OSError as error:
        if error.errno not in mounted_volumes.DISK_ERRORS:
            return  # it was unmounted a moment ago
        turn.disk_errors.setdefault(volume, (error.strerror or str(error)).lower())
        system = FileSystem(errors=0, free=0, size=0)
    noted = diskfaults.noted_on(world, volume, mount)
    # one that is being left is not written to again: each test of a disk that hangs is one more child that stays
    tested = _tested(turn, volume, mount) if not noted and verified.is_noted(world, volume, mount) else None
    signs = Signs(
        options=mount.options,
        errors=system.errors,
        writing=tested.writing if tested else Writing.UNTRIED,
        detail=tested.detail if tested else "",
        unreadable=turn.disk_errors.get(volume, ""),
    )
    fault = noted or fault_in(signs)
    if not fault:
        _report_room(turn, volume, system, signs.writing)
        return

    def note() -> None:
        diskfaults.note(world, volume, fault, mount)
        world.memory.of(DiskWatchCache).forget(volume)

    leaving.leave(turn, volume, _etcd_cluster(turn, volume), mount, f"its file system {fault}", STEP, note)


def _tested(turn: Turn, volume: str, mount: Mount) -> WriteTested | None:
    """What came of the last write to this mount. A new one is started when it is due; a later round collects it."""
    world, now = turn.world, turn.world.clock.monotonic()
    cache = world.memory.of(DiskWatchCache)
    known = cache.tests.get(volume)
    if volume not in cache.running and _is_due(turn, volume, mount, known):
        cache.running[volume] = WriteTest(point=mount.point, number=mount.number, begun=now)
    if volume in cache.running and (result := world.disks.run(cache.running[volume])) is not None:
        if not (isinstance(result, Failed) and result.overdue):  # such a one still runs
            del cache.running[volume]
        if (outcome := _outcome(result, now, known)) is not None:
            known = cache.tests[volume] = outcome
    return known


def _is_due(turn: Turn, volume: str, mount: Mount, known: WriteTested | None) -> bool:
    if known is None or known.killed:
        return True
    passed = turn.world.clock.monotonic() - known.when
    return passed >= EVERY or (passed >= SOON and _is_suspect(turn, volume, mount, known))


def _is_suspect(turn: Turn, volume: str, mount: Mount, known: WriteTested) -> bool:
    """Whether something else went wrong that a broken disk would explain."""
    world = turn.world
    return (
        known.writing is Writing.NO_ROOM
        or volume in world.memory.of(mounted_volumes.HomesCache).failed
        or not world.disks.present(mount.number)
        or not _answers(turn, volume)
    )


def _answers(turn: Turn, volume: str) -> bool:
    """Whether the etcd on this volume takes connections; as far as that is known, it does."""
    listed = turn.volume(volume)
    etcd = turn.wanted.etcd_cluster(listed.etcd_cluster) if listed else None
    member = etcd.member(listed.member) if etcd and listed else None
    return etcd is None or member is None or turn.world.etcd[etcd.key].reachable(member.name)


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


def _etcd_cluster(turn: Turn, volume: str) -> str:
    listed = turn.volume(volume)
    return listed.etcd_cluster if listed else ""


def _report_room(turn: Turn, volume: str, system: FileSystem, writing: Writing) -> None:
    mebibytes = f"{system.free >> 20} of {system.size >> 20} MiB are free"
    match room_in(system.free, system.size, writing):
        case Room.NONE:
            turn.report.needs_a_person(
                STEP, f"its file system is full: {mebibytes}", volume, "free some room on it, or make the disk larger"
            )
        case Room.LITTLE:
            turn.report.warn(STEP, f"its file system is nearly full: {mebibytes}", volume)
        case Room.ENOUGH:
            pass
