"""Remember how often the file system of a volume broke, and act by it before the volume is mounted again.

A fault is noted in /run at once, which needs neither network nor the broken disk. Before the volume is mounted again
the note goes into the state store, where the next machine finds it. Until that is done nothing is mounted: the count
must not be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field

from protokube.agent.cache import StepCache
from protokube.agent.etcd import generations
from protokube.agent.volume.runnotes import RunNotes
from protokube.agent.world import Turn, World
from protokube.errors import Refused, TryLater
from protokube.host import Mount
from protokube.members.diskfaults import (
    Broken,
    DiskFault,
    FaultRecord,
    HandOver,
    MountAnew,
    decode,
    encode,
    treatment,
)
from protokube.members.start import Kind, Refuse
from protokube.providers.volumes import Lock, Volume
from protokube.store import NotThere, Stored, layout

STEP = "disks"
NOTES = RunNotes("diskfaults")
MOUNTING = 60.0
"""Seconds for which a volume that was in use may be neither readable nor mountable before that counts as a fault."""
FOR_OTHERS = 30.0
"""Seconds in which another machine may take a volume that this one gave away."""


@dataclass(slots=True)
class DiskFaultsCache(StepCache):
    """Forgotten, a disk gets more time to be mounted."""

    cannot_mount: dict[str, str] = field(default_factory=dict)
    """By volume: why it could not be read or mounted when that was last tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A fault that is not in the store yet."""

    fault: DiskFault
    mount: str
    """The mount on which it was seen; "" if there was none."""


def note(world: World, volume: str, why: str, mount: Mount | None) -> None:
    """Once for each mount: a second note would count one fault twice."""
    known, key = noted(world, volume), mount.key if mount else ""
    if known is not None and known.mount == key:
        return
    fault = DiskFault(id=world.new_nonce(), host=world.me.id, at=world.clock.now(), why=why)
    NOTES.write_document(world, volume, {**asdict(fault), "mount": key})


def noted(world: World, volume: str) -> Noted | None:
    """What was noted; a note that cannot be read is none."""
    document = NOTES.read_document(world, volume)
    try:
        if document is None:
            return None
        mount = str(document.pop("mount"))
        return Noted(fault=DiskFault(**document), mount=mount)
    except (KeyError, TypeError):
        return None


def noted_on(world: World, volume: str, mount: Mount) -> str:
    """Why this very mount has to go; "" if nothing was noted on it."""
    known = noted(world, volume)
    return known.fault.why if known is not None and known.mount == mount.key else ""


def forget_others(world: World, kept: Collection[str]) -> None:
    """Notes about volumes that went to another machine in the meantime."""
    NOTES.keep_only(world, kept)


def before_mounting(turn: Turn, volume: Volume, name: str) -> None:
    """Record what was noted, and do what the record asks for. Returns if the volume may be mounted here now."""
    world = turn.world
    _count_time(turn, volume)
    if known := noted(world, volume.id):
        _change(turn, volume, lambda record: record.with_fault(known.fault))
        NOTES.forget(world, volume.id)
    record = recorded(turn, volume)
    if record is None or not record.faults:
        return
    floats = world.volumes.lock is not Lock.PIN
    match treatment(volume.id, name, record, world.me.id, world.clock.now(), floats=floats):
        case MountAnew():
            return
        case HandOver(why):
            world.volumes.release(volume.id)  # before it is recorded: what was not given away is given away again
            turn.report.done(STEP, f"gave {volume.id} to another machine, since {why}", name)
            _change(turn, volume, lambda record: record.with_hand_over(world.me.id))
            raise TryLater(f"{volume.id} was given to another machine, since {why}")
        case Broken(why, hint):
            turn.decisions[volume.id] = Refuse(why, hint, Kind.BROKEN)
            raise Refused(why, hint=hint)


def story(turn: Turn, volume: Volume) -> str:
    """The end of a sentence about a volume that is not mounted: why it was unmounted, if it broke here lately."""
    known = noted(turn.world, volume.id)
    record = None if known else recorded(turn, volume)
    here = [each for each in record.lately(turn.world.clock.now()) if each.host == turn.world.me.id] if record else []
    last = known.fault if known else here[-1] if here else None
    return f"; before, its file system {last.why}" if last else ""


def failed_to_mount(turn: Turn, volume: Volume, why: str) -> None:
    """Its device or its file system did not answer as it should. Counted if that lasts."""
    turn.world.memory.of(DiskFaultsCache).cannot_mount[volume.id] = why


def mounted(turn: Turn, volume: Volume) -> None:
    turn.world.memory.of(DiskFaultsCache).cannot_mount.pop(volume.id, None)


def _count_time(turn: Turn, volume: Volume) -> None:
    """How long it has taken; a new agent starts the count again, which only gives the disk more time."""
    memory, what = turn.world.memory, f"mounting {volume.id}"
    waited = turn.waited(what)
    reasons = memory.of(DiskFaultsCache).cannot_mount
    why = reasons.get(volume.id)
    if why is not None and waited >= MOUNTING and volume.epoch:
        note(turn.world, volume.id, f"could not be mounted: {why}", None)
        reasons.pop(volume.id)
        memory.since.pop(what)


def why_leave_to_others(turn: Turn, volume: Volume) -> str:
    """Why this machine does not claim a free volume yet: it gave that one away, and others are to try."""
    record = recorded(turn, volume)
    if record is None or record.handed_over != turn.world.me.id or not record.lately(turn.world.clock.now()):
        return ""
    left = FOR_OTHERS - turn.waited(f"given away {volume.id}")
    return "its file system broke here twice; another machine may take it first" if left > 0 else ""


def recorded(turn: Turn, volume: Volume) -> FaultRecord | None:
    """None if the store does not say it: that stops nothing, since each mount is checked anyway."""
    if volume.id not in turn.disk_faults:
        try:
            stored = _stored(turn, volume)
        except (TryLater, Refused):
            turn.disk_faults[volume.id] = None
        else:
            turn.disk_faults[volume.id] = _decoded(stored)
    return turn.disk_faults[volume.id]


def _change(turn: Turn, volume: Volume, how: Callable[[FaultRecord], FaultRecord]) -> None:
    """Write over exactly what was read. TryLater if the store does not take it."""
    stored = _stored(turn, volume)
    known = _decoded(stored)
    wanted = how(known)
    path = _path(turn, volume)
    if stored is None:
        generations.create_beside(turn, volume.etcd_cluster, path, encode(wanted))
    elif wanted != known:
        turn.world.store.replace(path, encode(wanted), stored.version)
    turn.disk_faults[volume.id] = wanted


def _decoded(stored: Stored | None) -> FaultRecord:
    """A record that cannot be read counts as none: it only limits how often we try."""
    return (decode(stored.data) if stored else None) or FaultRecord()


def _stored(turn: Turn, volume: Volume) -> Stored | None:
    try:
        return turn.world.store.read(_path(turn, volume))
    except NotThere:
        return None


def _path(turn: Turn, volume: Volume) -> str:
    return layout.etcd_disk_faults(turn.wanted.cluster, volume.etcd_cluster, volume.id)
