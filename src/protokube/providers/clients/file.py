"""An inventory of machines and the disks built into them: a YAML file that the operator writes.

    machines:
      - {id: rack1-a, address: 10.0.0.11, zone: rack1, external: 203.0.113.11}
    disks:
      - machine: rack1-a
        device: /dev/disk/by-id/nvme-eui.0025385b71b0
        serial: S3Z8NB0K
        size: 480103981056
        etcdCluster: main
        member: a
        blank: true                # the operator confirms that nothing on it is needed

All errors are reported at once, each with its line: on a rack nothing else checks the file.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from protokube.errors import InvalidRequest, InvalidSpec, Problem, Where
from protokube.providers.machines import Machine
from protokube.spec import tree

UNITS = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
MACHINE_FIELDS = {"id", "name", "address", "external", "zone", "group", "master"}
DISK_FIELDS = {"id", "machine", "device", "serial", "size", "etcdCluster", "member", "blank"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A disk in a machine, for one etcd member."""

    id: str
    machine: str
    device: Path
    serial: str | None
    size: int
    etcd_cluster: str
    member: str
    blank: bool


@dataclass(frozen=True, slots=True)
class Inventory:
    machines: Sequence[Machine]
    disks: Sequence[Disk]


class Place(NamedTuple):
    """A position in the file."""

    at: str
    line: int


class InvalidInventory(InvalidRequest):
    """The inventory is not valid; holds every problem."""

    def __init__(self, path: Path, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(set(problems), key=lambda problem: problem.order))
        count = len(self.problems)
        lines = [f"  {line}" for problem in self.problems for line in str(problem).splitlines()]
        super().__init__("\n".join([f"{count} problem{'' if count == 1 else 's'} in the inventory {path}", *lines]))


def read_inventory(path: Path) -> Inventory:
    """Read and check the file. Raises InvalidInventory."""
    try:
        documents = tree.read_documents(path.read_text(), str(path))
    except InvalidSpec as error:
        raise InvalidInventory(path, error.problems) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInventory(path, [Problem(path="", message=f"it cannot be read: {error}")]) from error
    reader = _Reader(str(path))
    inventory = reader.inventory(documents)
    if reader.problems:
        raise InvalidInventory(path, reader.problems)
    return inventory


class _Reader:
    """Collects problems and continues, with a placeholder for each invalid value."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def problem(self, line: int, where: str, message: str, hint: str = "") -> None:
        self.problems.append(Problem(path=where, message=message, hint=hint, where=Where(self.file, line)))

    def inventory(self, documents: Sequence[tree.Mapping]) -> Inventory:
        if len(documents) != 1:
            self.problem(1, "", f"there are {len(documents)} documents", "an inventory is one")
            return Inventory((), ())
        root = documents[0]
        self.only(root, {"machines", "disks"}, "")
        machines = [(self.machine(item, at), Place(at, item.line)) for item, at in self.items(root, "machines")]
        disks = [(self.disk(item, at), Place(at, item.line)) for item, at in self.items(root, "disks")]
        self.compare(machines, disks)
        return Inventory(
            tuple(sorted((machine for machine, _ in machines), key=lambda machine: machine.id)),
            tuple(sorted((disk for disk, _ in disks), key=lambda disk: disk.id)),
        )

    def items(self, root: tree.Mapping, key: str) -> Iterator[tuple[tree.Mapping, str]]:
        found = root.fields.get(key)
        if not isinstance(found, tree.Sequence) or not found.items:
            self.problem(root.lines.get(key, root.line), key, "wants a list that is not empty")
            return
        for number, item in enumerate(found.items):
            if isinstance(item, tree.Mapping):
                yield item, f"{key}[{number}]"
            else:
                self.problem(item.line, f"{key}[{number}]", "wants a mapping")

    def machine(self, item: tree.Mapping, at: str) -> Machine:
        self.only(item, MACHINE_FIELDS, at)
        named = self.text(item, "id", at)
        return Machine(
            id=named,
            name=item.text("name") or named,
            zone=item.text("zone") or "local",
            address=self.address(item, "address", at, required=True),
            group=item.text("group") or "masters",
            master=self.truth(item, "master", at, default=True),
            external=self.address(item, "external", at, required=False),
        )

    def disk(self, item: tree.Mapping, at: str) -> Disk:
        self.only(item, DISK_FIELDS, at)
        device = self.text(item, "device", at)
        if device and not device.startswith("/dev/disk/by-"):
            hint = "take the link below /dev/disk/by-id that leads to it"
            self.problem(item.lines["device"], f"{at}.device", f"{device} may be another disk after a reboot", hint)
        serial = item.text("serial")
        named = item.text("id") or serial or device.rpartition("/")[2]
        if named and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:-]*", named):
            self.problem(item.line, f"{at}.id", f"{named!r} cannot be an id", "letters, digits, . _ : and - can")
        return Disk(
            id=named,
            machine=self.text(item, "machine", at),
            device=Path(device),
            serial=serial,
            size=self.size(item, at),
            etcd_cluster=self.text(item, "etcdCluster", at),
            member=self.text(item, "member", at),
            blank=self.truth(item, "blank", at, default=False),
        )

    def only(self, item: tree.Mapping, known: set[str], at: str) -> None:
        for key in item.fields:
            if key not in known:
                where = f"{at}.{key}".lstrip(".")
                self.problem(item.lines[key], where, "there is no such field", f"there are {', '.join(sorted(known))}")

    def text(self, item: tree.Mapping, key: str, at: str) -> str:
        found = item.text(key)
        if not found:
            self.problem(item.lines.get(key, item.line), f"{at}.{key}", "is missing")
        return found or ""

    def address(self, item: tree.Mapping, key: str, at: str, *, required: bool) -> str:
        node = item.fields.get(key)
        if not required and not isinstance(node, tree.Scalar | None):
            self.problem(item.lines[key], f"{at}.{key}", "wants an IP address")
        value = self.text(item, key, at) if required else item.text(key) or ""
        try:
            ipaddress.ip_address(value or "0.0.0.0")  # noqa: S104 a missing one is reported already
        except ValueError:
            self.problem(item.lines[key], f"{at}.{key}", f"{value!r} is not an IP address")
        return value

    def truth(self, item: tree.Mapping, key: str, at: str, *, default: bool) -> bool:
        node = item.fields.get(key)
        if node is None:
            return default
        if isinstance(node, tree.Scalar) and node.plain and node.text in tree.TRUE | tree.FALSE:
            return node.text in tree.TRUE
        self.problem(item.lines[key], f"{at}.{key}", "wants true or false")
        return default

    def size(self, item: tree.Mapping, at: str) -> int:
        text = self.text(item, "size", at)
        found = re.fullmatch(r"([0-9]+)(Ki|Mi|Gi|Ti)?", text)
        size = int(found[1]) * UNITS[found[2] or ""] if found else 0
        if text and (size == 0 or size % 512):
            hint = "`blockdev --getsize64` prints it; Ki, Mi, Gi and Ti may be used"
            self.problem(item.lines["size"], f"{at}.size", f"{text} is not the size of a disk in bytes", hint)
        return size

    def compare(self, machines: Sequence[tuple[Machine, Place]], disks: Sequence[tuple[Disk, Place]]) -> None:
        """Report unknown machines, and values that must be unique and are not."""
        known = {machine.id for machine, _ in machines}
        for disk, place in disks:
            if disk.machine and disk.machine not in known:
                hint = f"there are {', '.join(sorted(known))}"
                self.problem(place.line, f"{place.at}.machine", f"there is no machine {disk.machine}", hint)
        self.unique("id", [(machine.id, place) for machine, place in machines])
        self.unique("address", [(machine.address, place) for machine, place in machines])
        self.unique("external", [(machine.external, place) for machine, place in machines])
        owners = {machine.address: machine.id for machine, _ in machines}
        for machine, place in machines:
            if machine.external and (owner := owners.get(machine.external, machine.id)) != machine.id:
                self.problem(place.line, f"{place.at}.external", f"{machine.external} is the address of {owner}")
        self.unique("id", [(disk.id, place) for disk, place in disks])
        self.unique("device", [(str(disk.device) if disk.device.name else "", place) for disk, place in disks])
        self.unique("serial", [(disk.serial or "", place) for disk, place in disks])
        members = [(f"{disk.etcd_cluster}/{disk.member}" if disk.member else "", place) for disk, place in disks]
        self.unique("member", members)
        homes = [(f"a member of {disk.etcd_cluster} on {disk.machine}", place) for disk, place in disks if disk.machine]
        self.unique("machine", homes)

    def unique(self, field: str, values: Sequence[tuple[str, Place]]) -> None:
        first: dict[str, Place] = {}
        for value, place in values:
            if value in first:
                message = f"{value} is there twice, first at {first[value].at}"
                self.problem(place.line, f"{place.at}.{field}", message)
            elif value:
                first[value] = place
