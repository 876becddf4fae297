"""Detect a file system that failed while in use, and decide what to try before a person has to act. Pure.

Kernels differ in what they show: `ro`, `emergency_ro` and `shutdown` among the mount options, ext4's error count, or
nothing but a write that fails. Each of these signs is enough.

The hard part is to stop retrying. A disk is remounted on its machine once, then moved to another machine once, and is
refused if it fails there, too. The faults of the last hour are kept in the state store, not on the disk or the machine,
so neither a restart nor a move resets the count.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from enum import Enum
from typing import Any

from protokube.members.identity import take_version, without_duplicates

VERSION = 1
MEBIBYTE = 2**20
KEPT_SHARE, KEPT_MOST = 0.02, 16 * MEBIBYTE
"""ext4 reports blocks as free that it reserves for itself: the last 2 %, at most 16 MiB, cannot be allocated."""
NEARLY_FULL = 0.05
"""Share of a file system that should be free; etcd allocates its log 64 MB at a time."""
COUNTED = 3600.0
"""Seconds after which a fault no longer counts."""
OPTIONS = {
    "shutdown": "was shut down",
    "emergency_ro": "turned read-only after an error",
    "abort": "turned read-only after an error",
    "ro": "is read-only",
}
"""Mount options that a file system in use must not have, the most specific first."""


class Writing(Enum):
    """The result of writing a few bytes to a file system and flushing them."""

    FINE = "fine"
    UNTRIED = "untried"
    FAILED = "failed"
    HANGS = "hangs"
    NO_ROOM = "no room"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What is known of a mounted file system."""

    options: Collection[str]
    errors: int = 0
    """ext4's error count. fsck resets it when it repairs the file system, and runs before each mount."""
    writing: Writing = Writing.UNTRIED
    detail: str = ""
    """The error of that write."""
    unreadable: str = ""
    """The error of reading a file that always exists."""


def fault_in(signs: Signs) -> str:
    """What is wrong with a file system, as the predicate of a sentence; "" if no fault is known."""
    for option, words in OPTIONS.items():
        if option in signs.options:
            return words
    if signs.errors:
        return f"reports {signs.errors} error{'s' if signs.errors > 1 else ''}"
    if signs.unreadable:
        return f"cannot be read: {signs.unreadable}"
    match signs.writing:
        case Writing.FAILED:
            return f"cannot be written: {signs.detail}"
        case Writing.HANGS:
            return f"hangs when it is written: {signs.detail}"
        case Writing.FINE | Writing.UNTRIED | Writing.NO_ROOM:
            return ""


class Room(Enum):
    ENOUGH = "enough"
    LITTLE = "little"
    NONE = "none"


def room_in(free: int, size: int, writing: Writing = Writing.UNTRIED) -> Room:
    """How much room is left. A full file system is not a disk fault: remounting does not free space."""
    reserved = min(size * KEPT_SHARE, KEPT_MOST)
    if free < reserved + MEBIBYTE or writing is Writing.NO_ROOM:
        return Room.NONE
    return Room.LITTLE if free < size * NEARLY_FULL else Room.ENOUGH


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFault:
    """One occasion on which the file system of a volume failed or could not be mounted."""

    id: str
    """Makes recording idempotent: retries record the same fault once."""
    host: str
    at: float
    """Seconds since 1970 by that host's clock."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """The faults of one volume, the oldest first."""

    faults: tuple[DiskFault, ...] = ()
    handed_over: str = ""
    """The host that detached the volume for another one to take; "" if none did."""

    def with_fault(self, fault: DiskFault) -> FaultRecord:
        if any(each.id == fault.id for each in self.faults):
            return self
        kept = self.lately(fault.at)
        return FaultRecord(faults=(*kept, fault), handed_over=self.handed_over if kept else "")

    def with_hand_over(self, host: str) -> FaultRecord:
        return FaultRecord(faults=self.faults, handed_over=host)

    def lately(self, now: float) -> tuple[DiskFault, ...]:
        """The faults that still count, including one that a wrong clock dates into the future."""
        return tuple(each for each in self.faults if now - each.at < COUNTED)


@dataclass(frozen=True, slots=True)
class MountAnew:
    """Run fsck and mount the volume on this machine."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """Detach the volume so that another machine takes it."""

    why: str


@dataclass(frozen=True, slots=True)
class Broken:
    """A person decides."""

    why: str
    hint: str


Treatment = MountAnew | HandOver | Broken


def treatment(volume: str, name: str, record: FaultRecord, me: str, now: float, *, floats: bool) -> Treatment:
    """What the machine `me` does with a volume that it holds and has not mounted. `floats`: others can attach it.

    Only the machine on which it failed hands it over; the machine that takes it mounts it.
    """
    faults = record.lately(now)
    if len(faults) < 2:
        return MountAnew()
    last = faults[-1]
    if len(faults) == 2:
        is_ours_to_give = floats and last.host == me and not record.handed_over
        return HandOver(f"its file system {last.why}") if is_ours_to_give else MountAnew()
    hosts = ", ".join(dict.fromkeys(each.host for each in faults))
    return Broken(
        f"{volume}, the disk of {name}, broke {len(faults)} times within an hour, on {hosts}; the last time its file"
        f" system {last.why}",
        f"check the disk; then `protokube etcd accept {volume} --repaired`, or delete {volume}: the other members"
        f" then make {name} anew",
    )


def encode(record: FaultRecord) -> bytes:
    document = {
        "version": VERSION, "faults": [asdict(each) for each in record.faults], "handedOver": record.handed_over,
    }  # fmt: skip
    return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()


def decode(data: bytes) -> FaultRecord | None:
    """None for everything that `encode` does not write."""
    try:
        document: Any = json.loads(data, object_pairs_hook=without_duplicates)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or take_version(document, VERSION) or set(document) != {"faults", "handedOver"}:
        return None
    if not isinstance(document["faults"], list) or not isinstance(document["handedOver"], str):
        return None
    faults = tuple(_fault(each) for each in document["faults"])
    if any(each is None for each in faults):
        return None
    return FaultRecord(faults=tuple(each for each in faults if each), handed_over=document["handedOver"])


def _fault(document: Any) -> DiskFault | None:
    names = {each.name for each in fields(DiskFault)}
    if not isinstance(document, dict) or set(document) != names:
        return None
    texts = all(isinstance(document[name], str) for name in names - {"at"})
    return DiskFault(**document) if texts and isinstance(document["at"], int | float) else None
