"""Block volumes that hold the data of etcd members: the values, and a Protocol each for machines and for commands.

Tags and vendor errors are translated in the vendor's file and stop there. The attach call is the lock between masters:
losing the race for it is normal. No volume is taken from another machine here: whatever declares machines dead does so.

An agent sees volumes from one machine (VolumeProvider), and changes only what is attached to it (VolumeAttachments);
a command creates and deletes them (VolumePool).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from typing import Protocol

from protokube.errors import Refused, TryLater
from protokube.host import Device


class Lock(Enum):
    """What keeps a second machine away from a volume."""

    ATTACHMENT = "attachment"  # attached to at most one machine; while the provider is unreachable, keep serving
    PIN = "pin"  # built into one machine; it never moves


class AttachmentState(StrEnum):
    """Whether an attachment is complete. A cloud takes seconds, or longer, to attach or detach a volume."""

    SETTLED = "settled"  # attached to `attached_to`, or to nobody
    ATTACHING = "attaching"  # to `attached_to`; its device may not be there yet
    DETACHING = "detaching"  # from `attached_to`, if the provider still names it
    BUSY = "busy"  # the provider changes it otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A volume tagged as the data volume of one etcd member of our cluster."""

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
    """The provider (or the operator, for a rack) states that it was created empty."""
    attached_to: str | None = None
    """The id of the machine it is attached to."""
    mark: str = ""
    """"", "formatting:NONCE", "forming" or "formed"."""
    epoch: int = 0
    """The highest epoch recorded at the provider; 0 before the first holder."""
    epoch_of: str = ""
    """The volume and generation the epoch belongs to, as `epoch_key` writes it; "" in records of older versions."""
    last_holder: str = ""
    """The id of the machine that wrote that epoch."""
    tagged: bool = True
    """Whether its tags are there. Without them, `etcd_cluster` and `member` are "" unless a record names them."""
    request: str = ""
    """The idempotency token given to `create_volume`; "" for a volume that it did not make."""
    state: AttachmentState = AttachmentState.SETTLED

    @property
    def is_free(self) -> bool:
        """Whether a machine may attach it now."""
        return self.attached_to is None and self.state is AttachmentState.SETTLED

    @property
    def between(self) -> str:
        """In words, the change that the provider has not completed; "" if there is none."""
        match self.state:
            case AttachmentState.SETTLED:
                return ""
            case AttachmentState.ATTACHING:
                return f"it is being attached to {self.attached_to or 'a machine'}"
            case AttachmentState.DETACHING:
                return f"it is being detached from {self.attached_to or 'a machine'}"
            case AttachmentState.BUSY:
                return "it is busy"

    def as_made(self) -> Volume:
        """The volume as it was created: never attached, and without a past."""
        return replace(
            self, attached_to=None, mark="", epoch=0, epoch_of="", last_holder="", state=AttachmentState.SETTLED
        )

    def epoch_for(self, generation: str) -> int:
        """The recorded epoch of this volume; 0 if its tags were copied from another volume."""
        return self.epoch if self.epoch_of in ("", epoch_key(self.id, generation)) else 0


def epoch_key(volume: str, generation: str) -> str:
    """The volume and generation that an epoch belongs to: tags get copied from one volume to another."""
    return f"{volume}/{generation}"


class VolumeTaken(TryLater):
    """Another machine attached it first; every master races for a free volume."""


class VolumeAttachments(Protocol):
    """What one machine may do to volumes: attach one, and change those that are attached to it.

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
        """Whether reads are consistent with all earlier writes. Most clouds answer from replicas that lag."""

    def look_up(self, volume: str) -> Volume | None:
        """This volume, tagged or not; None if the provider says that it does not exist.

        TryLater while it neither exists nor is gone, such as while it is being deleted.
        """

    def write_tags(self, volume: Volume) -> None:
        """Write the tags of a volume that we hold: etcd cluster, member, all members."""

    def attach(self, volume: str) -> None:
        """Attach to this machine; no effect if we hold it already. Raises VolumeTaken.

        TryLater while it is being detached, also from this machine, and while it is busy. Refused where volumes can
        move and this machine is not a master.
        """

    def device(self, volume: str) -> Device:
        """The device of a volume that we hold; it may not be there yet. Refused if we do not hold it."""

    def write_mark(self, volume: str, mark: str) -> None:
        """Set the mark; the caller reads it back. Refused unless the volume is attached to this machine now."""

    def write_epoch(self, volume: str, epoch: int, holder: str, *, generation: str) -> None:
        """Raise the epoch of this volume in this generation. A lower or equal epoch is ignored.

        A recorded epoch of another volume or generation is overwritten. Refused unless the volume is attached to this
        machine now, and `holder` is this machine.
        """

    def release(self, volume: str) -> None:
        """Detach a volume that this machine has unmounted; no effect if it is not attached to this machine.

        TryLater while the volume is in use; Refused where volumes cannot move.
        """


class VolumeProvider(VolumeAttachments, Protocol):
    """The tagged volumes of one cluster, seen from one machine."""

    def list_volumes(self) -> Sequence[Volume]:
        """Every tagged volume, in any zone, in any state, sorted by id: the complete list or an error."""

    def create_volume(self, like: Volume, *, request: str) -> Volume:
        """Create an empty volume for the member, zone and size of `like`; the provider chooses its id.

        Idempotent: the same `request` returns the same volume. Refused where the provider cannot create volumes, and
        to a machine that is not a master.
        """


class VolumePool(Protocol):
    """All volumes of one cluster, for a command of its operator.

    Every call is bounded in time. A provider that does not answer raises TryLater, although it may have acted; each
    call can be repeated.
    """

    def list_volumes(self) -> Sequence[Volume]:
        """Every volume of the cluster, with and without member tags, sorted by id: the complete list or an error."""

    def create_founders(self, likes: Sequence[Volume]) -> Sequence[Volume]:
        """Create one empty volume for the etcd cluster and member of each of `likes`, and return them in that order.

        Idempotent: a member has one founder ever. An existing one is returned as it was created; a deleted one is, too,
        and no other is created in its place.
        """

    def delete(self, volume: str) -> None:
        """Delete a volume of this cluster with its data, for good; no effect if there is none with this id.

        Refused while it is attached to a machine, and where it belongs to another cluster. TryLater while it is being
        detached, or a process still uses it after that.
        """


def need_free(volume: Volume) -> None:
    """TryLater while the volume is in a state between, Refused while it is attached.

    Providers call this inside their lock or transaction: no machine may attach it between this check and its deletion.
    """
    if volume.between:
        raise TryLater(f"{volume.id} is not deleted yet: {volume.between}")
    if volume.attached_to is not None:
        raise Refused(
            f"{volume.id} is attached, so it is not deleted",
            saw=f"attached to {volume.attached_to}",
            want="a volume that no machine holds",
        )


def need_holder(volume: Volume, machine: str, holder: str | None = None) -> None:
    """Refused unless the volume is attached to this machine; `holder`, if given, must name this machine too.

    Providers call this inside their lock or transaction: mark and epoch protect a member's data, so only the machine
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
