"""Decide the next step for a volume that is attached and not mounted, and above all whether to format it. Pure.

A format needs positive proof: the record names this volume as made by us, the provider reports that it was created
empty and never used, the device has the volume's serial and size, and it was read and is blank. Anything else is left
untouched and reported.
"""

from __future__ import annotations

from dataclasses import dataclass

from protokube.host import Block, Content, Device, Probed
from protokube.members.generation import FORMATTING, Generation, is_untouched
from protokube.members.start_values import Decision, Join, Kind, Refuse, Start, Wait
from protokube.providers.volumes import Volume


@dataclass(frozen=True, slots=True)
class MountIt:
    """It holds an ext4 file system: once mounted, its identity decides the rest."""


@dataclass(frozen=True, slots=True)
class MarkIt:
    """Proven blank and ours: mark the format at the provider, and read the mark back, before anything is written."""


@dataclass(frozen=True, slots=True)
class FormatIt:
    """Marked and proven; `again` finishes a format of ours that was cut short."""

    uuid: str
    again: bool = False


Next = MountIt | MarkIt | FormatIt | Wait | Refuse


def wrong_device(volume: Volume, device: Device, block: Block) -> Refuse | None:
    """Refuse a device whose serial or size is not the volume's."""
    if device.serial is not None and block.serial != device.serial:
        return Refuse(
            f"{block.path} is not {volume.id}: its serial is {block.serial or 'unknown'}, not {device.serial}",
            f"see which disk {block.path} really is; it was not touched",
        )
    if block.size != volume.size:
        return Refuse(
            f"{block.path} has {block.size} bytes, {volume.id} has {volume.size}", "it was not touched; check the disk"
        )
    return None


def nonce_of(mark: str) -> str | None:
    return mark.removeprefix(f"{FORMATTING}:") if mark.startswith(f"{FORMATTING}:") else None


def next_step(volume: Volume, probed: Probed, generation: Generation | None, decision: Decision) -> Next:
    """`decision` is what may be started on this volume if it is blank."""
    name = f"{volume.etcd_cluster}/{volume.member}"
    nonce = nonce_of(volume.mark)
    match probed.content:
        case Content.EXT4:
            return MountIt()
        case Content.BUSY:
            return Wait(f"{volume.id} is in use on this machine: {probed.description}")
        case Content.UNREADABLE:
            return Refuse(
                f"{volume.id} cannot be read: {probed.description}", "it was not touched; check the disk", Kind.BROKEN
            )
        case Content.FOREIGN:
            return Refuse(
                f"refusing to format {volume.id}: it is not blank: {probed.description}",
                f"check the tags of {volume.id}; it was not touched",
            )
        case Content.DIRTY if nonce is None:
            return Refuse(
                f"refusing to format {volume.id}: it has no file system, but it is not blank: {probed.description}",
                f"check the tags of {volume.id}; it was not touched",
            )
        case Content.DIRTY | Content.BLANK:
            pass
    if unproven := _not_proven_ours(volume, generation, name):
        return unproven
    if isinstance(decision, Wait | Refuse):
        return decision
    assert isinstance(decision, Start | Join)
    if nonce is None:
        return MarkIt()
    return FormatIt(nonce, again=probed.content is Content.DIRTY)


def _not_proven_ours(volume: Volume, generation: Generation | None, name: str) -> Refuse | None:
    if not is_untouched(volume.mark):
        return Refuse(
            f"{volume.id} was marked {volume.mark!r} and turns up blank: the data of {name} was lost outside of us",
            "look for a copy of the disk; a command that makes the member anew is not built yet: docs/limits.md",
        )
    if volume.epoch or volume.last_holder:
        return Refuse(
            f"{volume.id} was held before (epoch {volume.epoch}) and turns up blank: its data was lost outside of us",
            "look for a copy of the disk",
        )
    if not volume.made_empty:
        return Refuse(f"nothing says that {volume.id} was made empty", "a volume made from a snapshot has content")
    if generation is None or not generation.made_by_us(volume.member, volume.id):
        return Refuse(f"{volume.id} is not a volume that we made for {name}", "record it, or let the agents make one")
    return None
