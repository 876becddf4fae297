"""What a cluster consists of just now, for `logs` and `shell`: its hosts, and who holds which member.

From the database alone, read-only: a daemon that does not run is one of the reasons to read logs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field

from protokube.errors import TryLater
from protokube.local.base.paths import Paths
from protokube.local.host import hosts

SECONDS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHost:
    """One host, also one that is gone: its logs stay."""

    name: str
    group: str
    number: int
    """In the order in which they were made."""
    master: bool = True
    pid: int | None = None
    started: int | None = None
    alive: bool = True
    """Neither declared dead nor ended."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the volume of a member now, and who did last; empty for nobody."""

    now: str = ""
    last: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """Hosts, oldest first, and the holders by member, such as `main/a`."""

    hosts: tuple[KnownHost, ...] = ()
    members: Mapping[str, Holder] = field(default_factory=dict)

    @property
    def living(self) -> tuple[KnownHost, ...]:
        return tuple(each for each in self.hosts if each.alive)

    def host(self, name: str) -> KnownHost | None:
        return next((each for each in self.hosts if each.name == name), None)


def read_known(paths: Paths) -> Known:
    """TryLater if the database cannot be read now."""
    try:
        place = f"{paths.database.as_uri()}?mode=ro"
        with closing(sqlite3.connect(place, uri=True, timeout=SECONDS)) as connection:
            return _read(connection)
    except sqlite3.Error as why:
        raise TryLater(f"{paths.database} cannot be read", saw=str(why), hint="protokube status") from why


def _read(connection: sqlite3.Connection) -> Known:
    rows = connection.execute("SELECT name, grp, number, master, pid, started, dead FROM hosts ORDER BY number")
    found = tuple(
        KnownHost(
            name=name,
            group=group,
            number=number,
            master=bool(master),
            pid=pid,
            started=started,
            alive=not dead and pid is not None and started is not None and hosts.alive(pid, started),
        )
        for name, group, number, master, pid, started, dead in rows
    )
    rows = connection.execute(
        "SELECT etcd_cluster || '/' || member, attached_to, last_holder FROM volumes"
        " WHERE NOT deleted AND member != '' ORDER BY 1, attached_to IS NOT NULL"
    )
    return Known(found, {member: Holder(now or "", last) for member, now, last in rows})
