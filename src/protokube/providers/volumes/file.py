"""Disks that are built into their machines, from an inventory file.

No disk moves, so there is no lock: a disk is always attached to its machine. No provider keeps marks and epochs either,
so each machine keeps those of its own disks in a local folder. Those of other machines' disks are not known here: their
mark reads `unknown`, which permits nothing, and only their own machine writes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from protokube.errors import InvalidRequest, Refused
from protokube.host import Device
from protokube.providers.clients.file import Disk, Inventory, read_inventory
from protokube.providers.volumes import Lock, Volume, VolumeTaken, epoch_key

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Kept:
    """Mark and epoch of one of this machine's own disks, as stored in its state folder."""

    mark: str = ""
    epoch: int = 0
    last_holder: str = ""
    epoch_of: str = ""


class FileVolumes:
    """Implements VolumeProvider; `state` is a folder that survives a reboot."""

    lock = Lock.PIN
    zonal = False
    consistent = True

    def __init__(self, inventory: Path, machine: str, state: Path) -> None:
        self.path, self.machine, self.state = inventory, machine, state
        read_inventory(inventory)  # report its errors when the program starts

    def list_volumes(self) -> Sequence[Volume]:
        inventory = self._inventory()
        return [self._volume(disk, inventory) for disk in inventory.disks]

    def look_up(self, volume: str) -> Volume | None:
        return next((each for each in self.list_volumes() if each.id == volume), None)

    def write_tags(self, volume: Volume) -> None:
        raise Refused(f"{volume.id} has no tags: the inventory describes it", hint=f"edit {self.path}")

    def attach(self, volume: str) -> None:
        disk = self._find(volume)
        if disk.machine != self.machine:
            raise VolumeTaken(f"bolted to {disk.machine}")

    def device(self, volume: str) -> Device:
        disk = self._own(volume)
        return Device(path=disk.device, serial=disk.serial)

    def write_mark(self, volume: str, mark: str) -> None:
        self._own(volume)
        self._write(volume, replace(self._read(volume), mark=mark))

    def write_epoch(self, volume: str, epoch: int, holder: str, *, generation: str) -> None:
        self._own(volume)
        if holder != self.machine:
            raise Refused(
                f"{self.machine} may not name another machine as the holder of {volume}", saw=holder, want=self.machine
            )
        kept, key = self._read(volume), epoch_key(volume, generation)
        if epoch > (kept.epoch if kept.epoch_of in ("", key) else 0):
            self._write(volume, replace(kept, epoch=epoch, epoch_of=key, last_holder=holder))

    def release(self, volume: str) -> None:
        self._own(volume)
        raise Refused(f"{volume} is bolted to {self.machine}", hint="a person moves it to another machine")

    def create_volume(self, like: Volume, *, request: str) -> Volume:
        raise Refused(
            f"a disk for {like.etcd_cluster}/{like.member} has to be built in by somebody",
            saw=f"asked for by {request}",
            hint=f"build it in, and write it into {self.path} with `blank: true`",
        )

    def _inventory(self) -> Inventory:
        """Read the file each time: a disk may have been replaced."""
        try:
            return read_inventory(self.path)
        except InvalidRequest as error:
            raise Refused(error.message, hint=f"correct {self.path}") from error

    def _find(self, volume: str) -> Disk:
        for disk in self._inventory().disks:
            if disk.id == volume:
                return disk
        raise Refused(f"there is no disk {volume}", hint=f"see {self.path}")

    def _own(self, volume: str) -> Disk:
        disk = self._find(volume)
        if disk.machine != self.machine:
            raise Refused(f"{volume} is not ours", saw=f"bolted to {disk.machine}", want=f"a disk of {self.machine}")
        return disk

    def _volume(self, disk: Disk, inventory: Inventory) -> Volume:
        zones = {machine.id: machine.zone for machine in inventory.machines}
        members = sorted(other.member for other in inventory.disks if other.etcd_cluster == disk.etcd_cluster)
        try:
            kept = self._read(disk.id) if disk.machine == self.machine else Kept(mark=UNKNOWN)
        except Refused:
            kept = Kept(mark=UNKNOWN)
        return Volume(
            id=disk.id,
            zone=zones[disk.machine],
            etcd_cluster=disk.etcd_cluster,
            member=disk.member,
            members=tuple(members),
            size=disk.size,
            made_empty=disk.blank,
            attached_to=disk.machine,
            mark=kept.mark,
            epoch=kept.epoch,
            epoch_of=kept.epoch_of,
            last_holder=kept.last_holder,
        )

    def _read(self, volume: str) -> Kept:
        """The stored state; empty if there is no file yet. Refused if the file cannot be read: that is not empty."""
        path = self.state / f"{volume}.json"
        try:
            document = json.loads(path.read_bytes())
            kept = Kept(
                mark=document["mark"],
                epoch=document["epoch"],
                last_holder=document["last_holder"],
                epoch_of=document.get("epoch_of", ""),
            )
            texts = (kept.mark, kept.last_holder, kept.epoch_of)
            if not all(type(each) is str for each in texts) or type(kept.epoch) is not int:
                raise TypeError("fields of the wrong type")
        except FileNotFoundError:
            return Kept()
        except (OSError, ValueError, KeyError, TypeError) as error:
            hint = "bring it back from a backup; remove it only if nothing was ever on the disk"
            raise Refused(f"{path} cannot be read", saw=f"{type(error).__name__}: {error}", hint=hint) from error
        return kept

    def _write(self, volume: str, kept: Kept) -> None:
        """Write atomically and durably."""
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self.state / f".{volume}.json.new"
        with draft.open("w") as file:
            json.dump(asdict(kept), file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.state / f"{volume}.json")
        folder = os.open(self.state, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
