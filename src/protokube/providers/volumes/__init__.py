"""Block volumes that are the homes of etcd members: what a provider tells us of them, and what we may ask of it.

Tags and vendor errors are translated in the vendor's file and stop there. The attach call is the lock between masters:
losing it is normal. Nobody detaches a volume here: that is for whoever declares machines dead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from protokube.errors import Refused, TryLater
from protokube.host import Device


class Lock(Enum):
    """What keeps a second machine away from a volume."""

    ATTACHMENT = "attachment"  # attached to one machine at most; unreachable means: keep serving
    PIN = "pin"  # bolted to one machine; it never floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A volume tagged as the home of one etcd member of our cluster."""

    id: str
    zone: str
    etcd_cluster: str
    """"main" or "events"."""
    member: str
    members: tuple[str, ...]
    """Every member of that etcd cluster, as the tag lists them."""
    size: int
    """In bytes, exactly as the device will show it."""
    made_empty: bool
    """The provider (or the operator, for a rack) says that it was made without content."""
    attached_to: str | None = None
    """The id of the machine it is attached to."""
    mark: str = ""
    """"", "formatting:NONCE", "forming" or "formed"."""
    epoch: int = 0
    """The greatest epoch anybody wrote at the provider; 0 before the first holder."""
    epoch_of: str = ""
    """What that epoch was written for, as `epoch_key` has it; "" in records that former versions wrote."""
    last_holder: str = ""
    """The id of the machine that wrote that epoch."""
    tagged: bool = True
    """Whether its tags say what it is. Without them, `etcd_cluster` and `member` are "" unless a record says it."""
    request: str = ""
    """What `create_volume` was asked with; "" for a volume that somebody else made."""

    def epoch_for(self, generation: str) -> int:
        """The recorded epoch of this very volume; 0 for one that came here with the tags of another."""
        return self.epoch if self.epoch_of in ("", epoch_key(self.id, generation)) else 0


def epoch_key(volume: str, generation: str) -> str:
    """Names what an epoch belongs to: tags get copied from one volume to another."""
    return f"{volume}/{generation}"


class VolumeTaken(TryLater):
    """Another machine got there first; every master races for a free volume."""


class VolumeProvider(Protocol):
    """The tagged volumes of one cluster, seen from one machine.

    Every call is bounded in time. A provider that does not answer raises TryLater; one that turns us away raises
    Refused.
    """

    @property
    def lock(self) -> Lock: ...

    @property
    def zonal(self) -> bool:
        """Whether a volume can be attached only within its own zone."""

    @property
    def consistent(self) -> bool:
        """Whether every read shows all that was written before it. Most clouds answer from replicas that lag."""

    def list_volumes(self) -> Sequence[Volume]:
        """Every tagged volume, in any zone, held or free, sorted by id: the complete list or an error, never a part."""

    def look_up(self, volume: str) -> Volume | None:
        """Exactly this volume, tagged or not; None if the provider says that there is no such volume.

        TryLater while it is neither there nor gone, as when it is being deleted.
        """

    def write_tags(self, volume: Volume) -> None:
        """Have a volume that we hold carry its tags: etcd cluster, member, all members."""

    def attach(self, volume: str) -> None:
        """Attach to this machine. Attaching what we hold is nothing. Raises VolumeTaken.

        Refused where volumes float and this machine is no master.
        """

    def device(self, volume: str) -> Device:
        """Where a volume that we hold shows up; it may not be there yet. Refused if we do not hold it."""

    def write_mark(self, volume: str, mark: str) -> None:
        """Set the mark; the caller reads it back. Refused unless the volume is attached to this machine now."""

    def write_epoch(self, volume: str, epoch: int, holder: str, *, generation: str) -> None:
        """Raise the epoch of this volume in this generation. It never goes down: a lower or equal one is ignored.

        A recorded epoch of another volume or generation is overwritten. Refused unless the volume is attached to this
        machine now, and `holder` is this machine.
        """

    def release(self, volume: str) -> None:
        """Detach a volume from this machine, which has unmounted it. One that is not ours is left alone.

        TryLater while the volume is in use; Refused where volumes do not float.
        """

    def create_volume(self, like: Volume, *, request: str) -> Volume:
        """Make an empty volume for the member, zone and size of `like`; its id is the provider's choice.

        Asked twice with one `request`, it returns the first answer again. Refused where the provider cannot make any,
        and to a machine that is no master.
        """


def need_holder(volume: Volume, machine: str, holder: str | None = None) -> None:
    """Refused unless the volume is attached to this machine; `holder`, if given, must name this machine too.

    For providers, inside their lock or transaction: mark and epoch decide about a member's data, so only the machine
    that holds the volume now may write them.
    """
    if volume.attached_to != machine:
        raise Refused(
            f"{machine} may not write the mark or the epoch of {volume.id}",
            saw=f"{volume.id} is attached to {volume.attached_to or 'nobody'}",
            want=f"{volume.id} attached to {machine}",
        )
    if holder is not None and holder != machine:
        raise Refused(f"{machine} may not name another machine as the holder of {volume.id}", saw=holder, want=machine)
