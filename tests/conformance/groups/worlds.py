"""The far side of each kind of instance groups, and what a test can do to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from clusters.daemon import RealCloud, until
from protokube.providers.clients.local import LocalClient
from protokube.providers.clients.memory import MemoryCloud
from protokube.providers.groups import GroupProvider
from protokube.providers.groups.local import LocalGroups
from protokube.providers.groups.memory import MemoryGroups
from protokube.providers.machines import Machine
from protokube.providers.volumes import VolumePool
from protokube.providers.volumes.local import LocalVolumePool, LocalVolumes
from protokube.providers.volumes.memory import MemoryVolumePool


class GroupWorld(ABC):
    """A cloud with groups."""

    template: Mapping[str, Any] = {}
    changed_template: Mapping[str, Any] = {"zone": "b", "master": False}
    wrong_template: Mapping[str, Any] = {"no-such-field": 1}

    @abstractmethod
    def groups(self) -> GroupProvider: ...
    @abstractmethod
    def unreachable_groups(self) -> GroupProvider: ...
    @abstractmethod
    def pool(self) -> VolumePool: ...
    @abstractmethod
    def attach(self, volume: str, machine: str) -> None: ...
    @abstractmethod
    def kill(self, machine: str) -> None: ...
    @abstractmethod
    def machines(self, group: str) -> list[Machine]:
        """The machines of a group, oldest first."""

    def settled(self, group: str, size: int) -> list[Machine]:
        """Its machines, once there are so many."""
        until(lambda: len(self.machines(group)) == size)
        return self.machines(group)


class MemoryGroupWorld(GroupWorld):
    def __init__(self) -> None:
        self.cloud = MemoryCloud()

    def groups(self) -> GroupProvider:
        return MemoryGroups(self.cloud)

    def unreachable_groups(self) -> GroupProvider:
        cloud = MemoryCloud()
        cloud.down = True
        return MemoryGroups(cloud)

    def pool(self) -> VolumePool:
        return MemoryVolumePool(self.cloud)

    def attach(self, volume: str, machine: str) -> None:
        self.cloud.seen_from(machine).attach(volume)

    def kill(self, machine: str) -> None:
        self.cloud.kill_machine(machine)

    def machines(self, group: str) -> list[Machine]:
        return [machine for machine in self.cloud.machines_by_age() if machine.group == group]


class LocalGroupWorld(GroupWorld):
    """Its daemon is a process, and its hosts are real."""

    def __init__(self, folder: Path) -> None:
        self.cloud = RealCloud(folder)

    def groups(self) -> GroupProvider:
        return LocalGroups(self.cloud.admin)

    def unreachable_groups(self) -> GroupProvider:
        return LocalGroups(LocalClient(self.cloud.paths.root / "nobody-listens.sock"))

    def pool(self) -> VolumePool:
        return LocalVolumePool(self.cloud.admin)

    def attach(self, volume: str, machine: str) -> None:
        LocalVolumes(LocalClient(self.cloud.paths.host_socket(machine))).attach(volume)

    def kill(self, machine: str) -> None:
        self.cloud.admin.call("kill_host", host=machine)

    def machines(self, group: str) -> list[Machine]:
        hosts = [host for host in self.cloud.admin.call("hosts") if host["group"] == group]
        return [
            Machine(
                id=host["name"], name=host["name"], zone=host["zone"], address=host["address"], group=group,
                master=host["master"],
            )
            for host in hosts
            if host["running"]
        ]  # fmt: skip

    def __enter__(self) -> Self:
        self.cloud.__enter__()
        self.cloud.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.cloud.__exit__(kind, error, at)
