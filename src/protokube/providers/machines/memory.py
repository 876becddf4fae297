"""Machines of the memory cloud, seen from one of them."""

from __future__ import annotations

from collections.abc import Sequence

from protokube.providers.clients.memory_calls import MemoryCalls
from protokube.providers.machines import Machine


class MemoryMachines:
    """Implements MachineProvider."""

    def __init__(self, cloud: MemoryCalls, machine: str) -> None:
        self.cloud, self.machine = cloud, machine

    def me(self) -> Machine:
        with self.cloud.call("me", self.machine) as machine:
            return machine

    def list_machines(self) -> Sequence[Machine]:
        with self.cloud.call("list_machines", self.machine):
            return self.cloud.machines()
