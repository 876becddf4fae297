"""Volumes of the memory cloud, seen from one of its machines, and by the operator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from protokube.errors import Refused
from protokube.host import Device
from protokube.providers.clients.memory_calls import MemoryCalls
from protokube.providers.volumes import Lock, Volume

DEVICES = Path("/dev/memory")


class MemoryVolumes:
    """Implements VolumeProvider."""

    lock = Lock.ATTACHMENT

    def __init__(self, cloud: MemoryCalls, machine: str) -> None:
        self.cloud, self.machine = cloud, machine

    @property
    def zonal(self) -> bool:
        return self.cloud.zonal

    @property
    def consistent(self) -> bool:
        return self.cloud.consistent

    def list_volumes(self) -> Sequence[Volume]:
        with self.cloud.call("list_volumes", self.machine):
            return self.cloud.listed()

    def look_up(self, volume: str) -> Volume | None:
        with self.cloud.call("look_up", self.machine):
            return self.cloud.look_up(volume)

    def write_tags(self, volume: Volume) -> None:
        with self.cloud.call("write_tags", self.machine, writes=True):
            self.cloud.write_tags(volume, self.machine)

    def attach(self, volume: str) -> None:
        with self.cloud.call("attach", self.machine, writes=True) as machine:
            self.cloud.attach(volume, machine)

    def device(self, volume: str) -> Device:
        with self.cloud.call("device", self.machine):
            found = self.cloud.find(volume)
            if found.attached_to != self.machine:
                raise Refused(f"{volume} is not ours", saw=f"attached to {found.attached_to or 'nobody'}")
            return Device(path=DEVICES / volume, serial=volume)

    def write_mark(self, volume: str, mark: str) -> None:
        with self.cloud.call("write_mark", self.machine, writes=True) as machine:
            self.cloud.write_mark(volume, mark, machine)

    def write_epoch(self, volume: str, epoch: int, holder: str, *, generation: str) -> None:
        with self.cloud.call("write_epoch", self.machine, writes=True) as machine:
            self.cloud.write_epoch(volume, epoch, holder, machine, generation=generation)

    def release(self, volume: str) -> None:
        with self.cloud.call("release", self.machine, writes=True):
            self.cloud.release(volume, self.machine)

    def create_volume(self, like: Volume, *, request: str) -> Volume:
        with self.cloud.call("create_volume", self.machine, writes=True) as machine:
            return self.cloud.create_volume(like, request, machine)


class MemoryVolumePool:
    """Implements VolumePool."""

    def __init__(self, cloud: MemoryCalls) -> None:
        self.cloud = cloud

    def list_volumes(self) -> Sequence[Volume]:
        with self.cloud.operator_call("volumes"):
            return self.cloud.volumes()

    def create_founders(self, likes: Sequence[Volume]) -> Sequence[Volume]:
        with self.cloud.operator_call("create_founders"):
            return self.cloud.create_founders(likes)

    def delete(self, volume: str) -> None:
        with self.cloud.operator_call("delete_free_volume"):
            self.cloud.delete_free_volume(volume)
