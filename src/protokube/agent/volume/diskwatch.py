"""Watch the file systems that are mounted here, and unmount those that broke.

On a file system that turned read-only, etcd crashes in a loop; where writes fail, the page cache holds data that is not
on the disk. So the member is stopped and the volume unmounted, never lazily. Then it is mounted like any other volume:
checked by e2fsck, compared with its records, its epoch raised. `diskfaults` limits the attempts.

Each round checks only what is cheap. A child process tests a write once a minute, and soon after etcd stops answering.
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
    """The result of the last write test of a mounted file system."""

    when: float
    writing: Writing
    detail: str = ""
    killed: bool = False
    """The test timed out; that alone proves nothing, since this machine may have been suspended."""


@dataclass(slots=True)
class DiskWatchCache(StepCache):
    """If lost, each file system is tested once more."""

    tests: dict[str, WriteTested] = field(default_factory=dict)
    """By volume: the last result."""
    running: dict[str, WriteTest] = field(default_factory=dict)
    """By volume: the test in progress."""

    def forget(self, volume: str) -> None:
        """Drop results of a mount that is over: a later mount may look the same, even to the kernel."""
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
    # no test of a mount with a noted fault: on a disk that hangs, each test leaves one more stuck child
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
    """The result of the last write test. A new test is started when it is due; a later round collects it."""
    edges, now = round_.edges, round_.edges.clock.monotonic()
    cache = edges.cache.of(DiskWatchCache)
    known = cache.tests.get(volume)
    if volume not in cache.running and _is_due(round_, volume, mount, known):
        cache.running[volume] = WriteTest(point=mount.point, number=mount.number, begun=now)
    if volume in cache.running and (result := edges.disks.run(cache.running[volume])) is not None:
        if not (isinstance(result, Failed) and result.overdue):  # an overdue test still runs
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
    """Whether another symptom suggests a broken disk."""
    edges = round_.edges
    return (
        known.writing is Writing.NO_ROOM
        or volume in edges.cache.of(mounted_volumes.MountsCache).failed
        or not edges.disks.present(mount.number)
        or not _answers(round_, volume)
    )


def _answers(round_: Round, volume: str) -> bool:
    """Whether the etcd on this volume accepts connections; True if unknown."""
    listed = round_.volume(volume)
    etcd = round_.wanted.etcd_cluster(listed.etcd_cluster) if listed else None
    member = etcd.member(listed.member) if etcd and listed else None
    return etcd is None or member is None or round_.edges.etcd[etcd.key].reachable(member.name)


def _outcome(result: Result, now: float, before: WriteTested | None) -> WriteTested | None:
    """None if the child could not start, which proves nothing about the disk.

    One timeout may come from a suspended machine. A disk that hangs makes the next test time out too.
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
