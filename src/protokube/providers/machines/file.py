"""Machines of a rack, from an inventory file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from protokube.errors import InvalidRequest, Refused
from protokube.providers.clients.file import read_inventory
from protokube.providers.machines import Machine


class FileMachines:
    """Implements MachineProvider; `machine` is the id of the one we run on."""

    def __init__(self, inventory: Path, machine: str) -> None:
        self.path, self.machine = inventory, machine
        read_inventory(inventory)  # report its errors when the program starts

    def me(self) -> Machine:
        for machine in self.list_machines():
            if machine.id == self.machine:
                return machine
        raise Refused(f"{self.machine} is not in the inventory", hint=f"add it to {self.path}")

    def list_machines(self) -> Sequence[Machine]:
        try:
            return read_inventory(self.path).machines
        except InvalidRequest as error:
            raise Refused(error.message, hint=f"correct {self.path}") from error
