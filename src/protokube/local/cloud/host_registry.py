"""Every host the local cloud ever had. Names are never reused, addresses only when no unused one is left."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from protokube.errors import Refused, TryLater
from protokube.local.base.db import Database
from protokube.providers.machines import Machine

NETWORK = "10.77.0."
FIRST, LAST = 11, 254
BOOT = "boot"
"""The setting with the boot id of the machine on which the daemon last ran."""
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host, running, dead, or declared dead and perhaps still there."""

    name: str
    group: str
    zone: str
    master: bool
    address: str
    pid: int | None
    """Of its init; None until the host was started."""
    started: int | None
    dead: bool
    """Declared dead: final, even if its processes still run."""

    def machine(self) -> Machine:
        return Machine(
            id=self.name, name=self.name, zone=self.zone, address=self.address, group=self.group, master=self.master
        )


class HostRegistry:
    """The table of hosts."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def add(
        self, group: str, *, zone: str, master: bool = True, in_use: Callable[[Host], bool] = lambda host: not host.dead
    ) -> Host:
        """Register a new host, not started yet; `in_use` tells which former hosts still use their address."""
        with self.database.transaction() as connection:
            former = [_host(row) for row in connection.execute("SELECT * FROM hosts ORDER BY number")]
            name, address = _new_name(group, former), _new_address(former, in_use)
            connection.execute(
                "INSERT INTO hosts (name, grp, zone, master, address, number) VALUES (?, ?, ?, ?, ?, ?)",
                (name, group, zone, master, address, len(former)),
            )
        return self.find(name)

    def write_started(self, name: str, pid: int, started: int) -> None:
        with self.database.transaction() as connection:
            connection.execute("UPDATE hosts SET pid = ?, started = ? WHERE name = ?", (pid, started, name))

    def mark_dead(self, name: str) -> bool:
        """Declare it dead; return whether that is new."""
        with self.database.transaction() as connection:
            return connection.execute("UPDATE hosts SET dead = 1 WHERE name = ? AND NOT dead", (name,)).rowcount > 0

    def forget_processes_of_another_boot(self, boot: str) -> None:
        """After a reboot, a process with the same pid and start time is somebody else's: it must not be killed."""
        known = self.database.setting(BOOT, boot)
        if known != boot:
            with self.database.transaction() as connection:
                connection.execute("UPDATE hosts SET pid = NULL, started = NULL")
        self.database.set(BOOT, boot)

    def find(self, name: str) -> Host:
        found = self.database.rows("SELECT * FROM hosts WHERE name = ?", (name,))
        if not found:
            raise Refused(f"there is no host {name}", hint="protokube status shows which there are")
        return _host(found[0])

    def all_hosts(self) -> Sequence[Host]:
        """Every host ever registered, oldest first."""
        return [_host(row) for row in self.database.rows("SELECT * FROM hosts ORDER BY number")]

    def living(self) -> Sequence[Host]:
        return [host for host in self.all_hosts() if not host.dead]


def _host(row: sqlite3.Row) -> Host:
    return Host(
        name=row["name"],
        group=row["grp"],
        zone=row["zone"],
        master=bool(row["master"]),
        address=row["address"],
        pid=row["pid"],
        started=row["started"],
        dead=bool(row["dead"]),
    )


def _new_name(group: str, former: Sequence[Host]) -> str:
    taken = {host.name for host in former}
    while (name := f"{group}-{''.join(secrets.choice(LETTERS) for _ in range(4))}") in taken:
        pass
    return name


def _new_address(former: Sequence[Host], in_use: Callable[[Host], bool]) -> str:
    """An address that was never used, or else the least recently used one."""
    last_user = {host.address: number for number, host in enumerate(former)}
    busy = {host.address for host in former if not host.dead or in_use(host)}
    free = [f"{NETWORK}{n}" for n in range(FIRST, LAST + 1) if f"{NETWORK}{n}" not in busy]
    if not free:
        raise TryLater("every address of the local cloud is in use", saw=f"{len(busy)} hosts")
    return min(free, key=lambda address: last_user.get(address, -1))
