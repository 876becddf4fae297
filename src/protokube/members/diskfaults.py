"""A file system that broke while it served: how that is known, and what may be tried before a person is asked. Pure.

Kernels differ in what they show: `ro`, `emergency_ro` and `shutdown` among the mount options, ext4's count of errors,
or nothing but a write that fails. Each sign is enough.

What is hard is to stop trying. A disk is mounted anew on its machine once, then given to another machine once, and is
refused if it breaks there, too. The faults of the last hour are kept in the state store, off the disk and off the
machine, so that neither a restart nor a move begins the count again.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from enum import Enum
from typing import Any

from protokube.members.identity import said_once, take_version

VERSION = 1
MEBIBYTE = 2**20
KEPT_SHARE, KEPT_MOST = 0.02, 16 * MEBIBYTE
"""ext4 counts as free what it keeps for itself: nobody gets the last 2 %, or 16 MiB of a large file system."""
NEARLY_FULL = 0.05
"""Share of a file system that should be free; etcd allocates its log 64 MB at a time."""
COUNTED = 3600.0
"""Seconds for which a fault counts."""
OPTIONS = {
    "shutdown": "was shut down",
    "emergency_ro": "turned read-only after an error",
    "abort": "turned read-only after an error",
    "ro": "is read-only",
}
"""Options that a served file system must not have, the most telling first."""


class Writing(Enum):
    """What came of writing a few bytes to a file system and flushing them."""

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
    """As ext4 counts them; a check that mends the file system resets the count, and one is made before each mount."""
    writing: Writing = Writing.UNTRIED
    detail: str = ""
    """The error of that write."""
    unreadable: str = ""
    """The error of reading a file that is always there."""


def fault_in(signs: Signs) -> str:
    """What is wrong with a file system, as the rest of a sentence about it; "" if nothing is known to be."""
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
    """Mounting a full file system anew makes it no emptier, so this is no fault of the disk."""
    nobodys = min(size * KEPT_SHARE, KEPT_MOST)
    if free < nobodys + MEBIBYTE or writing is Writing.NO_ROOM:
        return Room.NONE
    return Room.LITTLE if free < size * NEARLY_FULL else Room.ENOUGH


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFault:
    """One time that the file system of a volume broke, or could not be mounted."""

    id: str
    """Names this one, so that it is recorded once however often that is tried."""
    host: str
    at: float
    """Seconds since 1970, as that host's clock had it."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """The faults of one volume, the oldest first."""

    faults: tuple[DiskFault, ...] = ()
    handed_over: str = ""
    """The host that gave the volume away because of them; "" if none did."""

    def with_fault(self, fault: DiskFault) -> FaultRecord:
        if any(each.id == fault.id for each in self.faults):
            return self
        kept = self.lately(fault.at)
        return FaultRecord(faults=(*kept, fault), handed_over=self.handed_over if kept else "")

    def with_hand_over(self, host: str) -> FaultRecord:
        return FaultRecord(faults=self.faults, handed_over=host)

    def lately(self, now: float) -> tuple[DiskFault, ...]:
        """Those that count: also one that a wrong clock dates into the future."""
        return tuple(each for each in self.faults if now - each.at < COUNTED)


@dataclass(frozen=True, slots=True)
class MountAnew:
    """Check and mount it on this machine."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """Give it to another machine."""

    why: str


@dataclass(frozen=True, slots=True)
class Broken:
    """A person decides."""

    why: str
    hint: str


Treatment = MountAnew | HandOver | Broken


def treatment(volume: str, name: str, record: FaultRecord, me: str, now: float, *, floats: bool) -> Treatment:
    """What the machine `me` does with a volume that it holds and has not mounted. `floats`: others can take it.

    Only the machine on which it broke gives it away: whoever gets it mounts it.
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
        document: Any = json.loads(data, object_pairs_hook=said_once)
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
