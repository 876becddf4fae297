"""The state of a local cluster as its daemon leaves it on disk, without any daemon or host."""

from __future__ import annotations

import os
from pathlib import Path

from protokube.local.base.db import Database
from protokube.local.base.paths import Paths
from protokube.local.base.processes import started_at


class LocalState:
    """One cluster below a folder. Hosts that run are said to be this process."""

    def __init__(self, parent: Path, name: str = "one") -> None:
        self.paths = Paths.at(parent / name)
        self.paths.create()
        self._number = 0
        Database(self.paths.database).close()

    def host(self, name: str, *, alive: bool = True, master: bool = True) -> str:
        self._number += 1
        pid, started = (os.getpid(), started_at(os.getpid())) if alive else (None, None)
        self._run(
            "INSERT INTO hosts (name, grp, zone, master, address, pid, started, number)"
            " VALUES (?, ?, 'z', ?, 'x', ?, ?, ?)",
            (name, name.rpartition("-")[0], master, pid, started, self._number),
        )
        return name

    def kill(self, host: str) -> None:
        self._run("UPDATE hosts SET dead = 1 WHERE name = ?", (host,))
        self._run("UPDATE volumes SET attached_to = NULL WHERE attached_to = ?", (host,))

    def volume(self, member: str, holder: str | None) -> None:
        """The volume of `main/MEMBER`, held by this host from now on."""
        self._run(
            "INSERT INTO volumes (id, zone, etcd_cluster, member, members, size, founder, request)"
            " VALUES (?, 'z', 'main', ?, '[]', 1, 1, ?) ON CONFLICT DO NOTHING",
            (f"vol-{member}", member, member),
        )
        self._run(
            "UPDATE volumes SET attached_to = ?, last_holder = coalesce(?, last_holder) WHERE member = ?",
            (holder, holder, member),
        )

    def record(self, name: str, address: str) -> None:
        self._run("INSERT INTO records VALUES (?, 'A', 5, ?)", (name, address))

    def exposed(self, local_port: int, service: str) -> None:
        self._run("INSERT INTO exposed VALUES ('127.0.0.1', ?, 'default', ?, '80')", (local_port, service))

    def log(self, host: str, name: str, *lines: str) -> Path:
        """Append to a log of a host, such as `protokube.service.log` below /var/log."""
        file = self.paths.host(host) / "var/log" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as opened:
            opened.write("".join(f"{line}\n" for line in lines))
        return file

    def _run(self, statement: str, values: tuple[object, ...]) -> None:
        database = Database(self.paths.database)
        with database.transaction() as connection:
            connection.execute(statement, values)
        database.close()
