"""Hosts of the local cloud, seen from the one that owns the socket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from protokube.providers.clients.local import LocalClient
from protokube.providers.machines import Machine

FIELDS = {field.name for field in fields(Machine)}


def decode_machine(document: dict[str, Any]) -> Machine:
    """Fields that only a newer daemon knows are ignored."""
    return Machine(**{name: value for name, value in document.items() if name in FIELDS})


class LocalMachines:
    """Implements MachineProvider."""

    def __init__(self, client: LocalClient) -> None:
        self.client = client

    def me(self) -> Machine:
        return decode_machine(self.client.call("me"))

    def list_machines(self) -> Sequence[Machine]:
        return [decode_machine(each) for each in self.client.call("list_machines")]
