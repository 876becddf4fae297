"""The far side of each kind of volumes, and what a test can do to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from builders.volumes import SIZE, a_volume
from clusters.local import CloudWithoutHosts
from protokube.providers.clients.local import LocalClient
from protokube.providers.clients.memory import MemoryCloud
from protokube.providers.machines import MachineProvider
from protokube.providers.machines.file import FileMachines
from protokube.providers.machines.local import LocalMachines
from protokube.providers.volumes import Volume, VolumePool, VolumeProvider
from protokube.providers.volumes.file import FileVolumes
from protokube.providers.volumes.local import LocalVolumePool, LocalVolumes
from protokube.providers.volumes.memory import MemoryVolumePool


class World(Protocol):
    """What every kind has: at least two machines, and the volumes of main/a, main/b and main/c."""

    mine: str
    other: str
    external: str
    """The external address of `mine`, empty where machines cannot be given one; `other` has none."""

    def seen_from(self, machine: str) -> VolumeProvider: ...
    def machines_seen_from(self, machine: str) -> MachineProvider: ...


class FloatingWorld(ABC):
    """A cloud that a test can change."""

    mine = other = external = ""

    @abstractmethod
    def add_machine(self, *, master: bool = True) -> str: ...
    @abstractmethod
    def seen_from(self, machine: str) -> VolumeProvider: ...
    @abstractmethod
    def machines_seen_from(self, machine: str) -> MachineProvider: ...
    @abstractmethod
    def pool(self) -> VolumePool: ...
    @abstractmethod
    def unreachable_pool(self) -> VolumePool: ...
    @abstractmethod
    def remove_tags(self, volume: str) -> None: ...
    @abstractmethod
    def create_founders(self, *likes: Volume) -> list[Volume]: ...
    @abstractmethod
    def delete_volume(self, volume: str) -> None: ...
    @abstractmethod
    def declare_dead(self, machine: str) -> None: ...
    @abstractmethod
    def begin_detaching(self, machine: str) -> None:
        """Declare it dead, and detach nothing from it until it is declared dead again."""

    @abstractmethod
    def go_down(self, down: bool) -> None: ...

    def settled(self) -> FloatingWorld:
        self.mine, self.other = self.add_mine(), self.add_machine()
        self.create_founders(*(a_volume(member=member) for member in "abc"))
        return self

    def add_mine(self) -> str:
        return self.add_machine()

    def one_volume(self) -> Volume:
        return self.create_founders(a_volume())[0]


class MemoryWorld(FloatingWorld):
    external = "203.0.113.97"

    def __init__(self, *volumes: Volume) -> None:
        self.cloud = MemoryCloud(*volumes)

    def add_machine(self, *, master: bool = True) -> str:
        return self.cloud.add_machine(master=master).id

    def add_mine(self) -> str:
        return self.cloud.add_machine(external=self.external).id

    def seen_from(self, machine: str) -> VolumeProvider:
        return self.cloud.seen_from(machine)

    def machines_seen_from(self, machine: str) -> MachineProvider:
        return self.cloud.seen_from(machine)

    def pool(self) -> VolumePool:
        return MemoryVolumePool(self.cloud)

    def unreachable_pool(self) -> VolumePool:
        cloud = MemoryCloud()
        cloud.down = True
        return MemoryVolumePool(cloud)

    def remove_tags(self, volume: str) -> None:
        self.cloud.strip_tags(volume)

    def create_founders(self, *likes: Volume) -> list[Volume]:
        return self.cloud.create_founders(likes)

    def delete_volume(self, volume: str) -> None:
        self.cloud.delete_volume(volume)

    def declare_dead(self, machine: str) -> None:
        self.cloud.declare_dead(machine)

    def begin_detaching(self, machine: str) -> None:
        self.cloud.detaches_slowly = True
        self.cloud.declare_dead(machine)
        self.cloud.detaches_slowly = False

    def go_down(self, down: bool) -> None:
        self.cloud.down = down


class LocalWorld(FloatingWorld):
    """Asked through its real sockets; its disks are real."""

    def __init__(self, folder: Path) -> None:
        self.local = CloudWithoutHosts(folder)

    def add_machine(self, *, master: bool = True) -> str:
        return self.local.add_machine(master=master)

    def seen_from(self, machine: str) -> VolumeProvider:
        return LocalVolumes(self.local.client(machine))

    def machines_seen_from(self, machine: str) -> MachineProvider:
        return LocalMachines(self.local.client(machine))

    def pool(self) -> VolumePool:
        return LocalVolumePool(self.local.admin)

    def unreachable_pool(self) -> VolumePool:
        return LocalVolumePool(LocalClient(self.local.paths.root / "nobody-listens.sock"))

    def remove_tags(self, volume: str) -> None:
        self.local.admin.call("set_tags", volume=volume, etcd_cluster="", member="", members=[])

    def create_founders(self, *likes: Volume) -> list[Volume]:
        return list(self.local.cloud.create_founders(likes))

    def delete_volume(self, volume: str) -> None:
        self.local.admin.call("delete_volume", volume=volume)

    def declare_dead(self, machine: str) -> None:
        self.local.admin.call("declare_dead", host=machine)

    def begin_detaching(self, machine: str) -> None:
        self.local.cloud.registry.mark_dead(machine)  # as a daemon that is killed just then leaves it

    def go_down(self, down: bool) -> None:
        self.local.admin.call("api_down", seconds=1000 if down else 0)

    def __enter__(self) -> Self:
        self.local.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.local.__exit__(kind, error, at)


class FileWorld:
    """A rack of three machines with a disk each."""

    mine, other, external = "rack-a", "rack-b", "203.0.113.97"

    def __init__(self, folder: Path) -> None:
        self.inventory, self.folder = folder / "inventory.yaml", folder
        machines = f"  - {{id: rack-a, address: 10.0.0.97, external: {self.external}}}\n"
        machines += "".join(f"  - {{id: rack-{x}, address: 10.0.0.{ord(x)}}}\n" for x in "bc")
        disks = "".join(
            f"  - {{machine: rack-{x}, device: /dev/disk/by-id/disk-{x}, serial: S{x}, size: {SIZE},"
            f" etcdCluster: main, member: {x}, blank: true}}\n"
            for x in "abc"
        )
        self.inventory.write_text(f"machines:\n{machines}disks:\n{disks}")

    def seen_from(self, machine: str) -> VolumeProvider:
        return FileVolumes(self.inventory, machine, self.folder / machine)

    def machines_seen_from(self, machine: str) -> MachineProvider:
        return FileMachines(self.inventory, machine)
