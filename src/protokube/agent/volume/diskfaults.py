"""Record how often the file system of a volume broke, and decide by it before the volume is mounted again.

A fault is noted in /run at once, which needs neither network nor the broken disk. Before the volume is mounted again
the note is written to the state store, where the next machine finds it. Until then nothing is mounted: the count must
not be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field

from protokube.agent.cache import StepCache
from protokube.agent.edges import Edges
from protokube.agent.etcd import generations
from protokube.agent.round import Round
from protokube.agent.volume.runnotes import RunNotes
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
from protokube.members.start_values import Kind, Refuse
from protokube.providers.volumes import Lock, Volume
from protokube.store import NotThere, Stored, layout

STEP = "disks"
NOTES = RunNotes("diskfaults")
MOUNTING = 60.0
"""Seconds for which a volume that was in use may be neither readable nor mountable before that counts as a fault."""
FOR_OTHERS = 30.0
"""Seconds in which another machine may take a volume that this one released."""


@dataclass(slots=True)
class DiskFaultsCache(StepCache):
    """If lost, a disk gets more time to be mounted."""

    cannot_mount: dict[str, str] = field(default_factory=dict)
    """By volume: the error of the last attempt to read or mount it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A fault that is not in the store yet."""

    fault: DiskFault
    mount: str
    """The mount on which it was seen; "" if there was none."""


def note(edges: Edges, volume: str, why: str, mount: Mount | None) -> None:
    """Note a fault, once for each mount: a second note would count it twice."""
    known, key = noted(edges, volume), mount.key if mount else ""
    if known is not None and known.mount == key:
        return
    fault = DiskFault(id=edges.new_nonce(), host=edges.me.id, at=edges.clock.now(), why=why)
    NOTES.write_document(edges, volume, {**asdict(fault), "mount": key})


def noted(edges: Edges, volume: str) -> Noted | None:
    """The noted fault; a note that cannot be read is ignored."""
    document = NOTES.read_document(edges, volume)
    try:
        if document is None:
            return None
        mount = str(document.pop("mount"))
        return Noted(fault=DiskFault(**document), mount=mount)
    except (KeyError, TypeError):
        return None


def noted_on(edges: Edges, volume: str, mount: Mount) -> str:
    """Why this mount must be unmounted; "" if no fault was noted on it."""
    known = noted(edges, volume)
    return known.fault.why if known is not None and known.mount == mount.key else ""


def forget_others(edges: Edges, kept: Collection[str]) -> None:
    """Delete notes about volumes that are no longer attached here."""
    NOTES.keep_only(edges, kept)


def before_mounting(round_: Round, volume: Volume, name: str) -> None:
    """Record the noted fault, and do what the record requires. Returns if the volume may be mounted here now."""
    edges = round_.edges
    _count_time(round_, volume)
    if known := noted(edges, volume.id):
        _change(round_, volume, lambda record: record.with_fault(known.fault))
        NOTES.forget(edges, volume.id)
    record = recorded(round_, volume)
    if record is None or not record.faults:
        return
    floats = edges.volumes.lock is not Lock.PIN
    match treatment(volume.id, name, record, edges.me.id, edges.clock.now(), floats=floats):
        case MountAnew():
            return
        case HandOver(why):
            edges.volumes.release(volume.id)  # before it is recorded: after a crash in between it is released again
            round_.report.done(STEP, f"gave {volume.id} to another machine, since {why}", name)
            _change(round_, volume, lambda record: record.with_hand_over(edges.me.id))
            raise TryLater(f"{volume.id} was given to another machine, since {why}")
        case Broken(why, hint):
            round_.decisions[volume.id] = Refuse(why, hint, Kind.BROKEN)
            raise Refused(why, hint=hint)


def fault_suffix(round_: Round, volume: Volume) -> str:
    """Suffix for a message about a volume that is not mounted: its last fault, if it broke here lately."""
    known = noted(round_.edges, volume.id)
    record = None if known else recorded(round_, volume)
    here = (
        [each for each in record.lately(round_.edges.clock.now()) if each.host == round_.edges.me.id] if record else []
    )
    last = known.fault if known else here[-1] if here else None
    return f"; before, its file system {last.why}" if last else ""


def failed_to_mount(round_: Round, volume: Volume, why: str) -> None:
    """Note that reading or mounting the volume failed. Counted as a fault if that lasts."""
    round_.edges.cache.of(DiskFaultsCache).cannot_mount[volume.id] = why


def mounted(round_: Round, volume: Volume) -> None:
    round_.edges.cache.of(DiskFaultsCache).cannot_mount.pop(volume.id, None)


def _count_time(round_: Round, volume: Volume) -> None:
    """Count a mount that keeps failing as a fault; a restarted agent starts at zero, which gives the disk more time."""
    cache, what = round_.edges.cache, f"mounting {volume.id}"
    waited = round_.waited(what)
    reasons = cache.of(DiskFaultsCache).cannot_mount
    why = reasons.get(volume.id)
    if why is not None and waited >= MOUNTING and volume.epoch:
        note(round_.edges, volume.id, f"could not be mounted: {why}", None)
        reasons.pop(volume.id)
        cache.since.pop(what)


def why_leave_to_others(round_: Round, volume: Volume) -> str:
    """Why this machine does not claim a free volume yet: it released that one, and others should try first."""
    record = recorded(round_, volume)
    if record is None or record.handed_over != round_.edges.me.id or not record.lately(round_.edges.clock.now()):
        return ""
    left = FOR_OTHERS - round_.waited(f"given away {volume.id}")
    return "its file system broke here twice; another machine may take it first" if left > 0 else ""


def recorded(round_: Round, volume: Volume) -> FaultRecord | None:
    """The fault record; None if the store cannot be read, which blocks nothing, since each mount is checked anyway."""
    if volume.id not in round_.disk_faults:
        try:
            stored = _stored(round_, volume)
        except (TryLater, Refused):
            round_.disk_faults[volume.id] = None
        else:
            round_.disk_faults[volume.id] = _decoded(stored)
    return round_.disk_faults[volume.id]


def _change(round_: Round, volume: Volume, how: Callable[[FaultRecord], FaultRecord]) -> None:
    """Compare-and-swap the record. TryLater if the store does not accept it."""
    stored = _stored(round_, volume)
    known = _decoded(stored)
    wanted = how(known)
    path = _path(round_, volume)
    if stored is None:
        generations.create_record(round_, volume.etcd_cluster, path, encode(wanted))
    elif wanted != known:
        round_.edges.store.replace(path, encode(wanted), stored.version)
    round_.disk_faults[volume.id] = wanted


def _decoded(stored: Stored | None) -> FaultRecord:
    """A record that cannot be decoded counts as empty: it only limits the number of attempts."""
    return (decode(stored.data) if stored else None) or FaultRecord()


def _stored(round_: Round, volume: Volume) -> Stored | None:
    try:
        return round_.edges.store.read(_path(round_, volume))
    except NotThere:
        return None


def _path(round_: Round, volume: Volume) -> str:
    return layout.etcd_disk_faults(round_.wanted.cluster, volume.etcd_cluster, volume.id)
