"""The names of hosts, members and volumes of a local cluster, read quickly: for shell completion and hints.

From the database alone, which needs no daemon. Nothing here raises or writes: who may not read it knows no names.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

from protokube.local.base.paths import Paths

T = TypeVar("T")
PATIENCE = 0.3
"""Seconds: a person waits for the key that was pressed."""


@dataclass(frozen=True, slots=True)
class Names:
    """What there is to name in one cluster, sorted."""

    hosts: tuple[str, ...] = ()
    """Not declared dead."""
    members: tuple[str, ...] = ()
    """`main/a`."""
    volumes: tuple[str, ...] = ()
    records: tuple[str, ...] = ()


def read_names(paths: Paths) -> Names:
    """Empty where nothing can be read: no permission, no database, or a damaged one."""
    return _asked(paths, _read, Names())


def read_exposed(paths: Paths) -> list[str]:
    """The exposed ports, and the Services they lead to; not in a database of a former version."""
    return _asked(paths, _exposed, [])


def _asked(paths: Paths, read: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
    try:
        if not paths.database.is_file():  # SQLite would create it
            return otherwise
        place = f"{paths.database.as_uri()}?mode=ro"
        with closing(sqlite3.connect(place, uri=True, timeout=PATIENCE)) as connection:
            return read(connection)
    except (OSError, sqlite3.Error):
        return otherwise


def _exposed(connection: sqlite3.Connection) -> list[str]:
    rows = list(connection.execute("SELECT local_port, namespace || '/' || service FROM exposed ORDER BY 1"))
    return list(dict.fromkeys([*(str(port) for port, _ in rows), *(service for _, service in rows)]))


def _read(connection: sqlite3.Connection) -> Names:
    def column(query: str) -> tuple[str, ...]:
        return tuple(sorted({str(row[0]) for row in connection.execute(query)}))

    return Names(
        hosts=column("SELECT name FROM hosts WHERE NOT dead"),
        members=column("SELECT etcd_cluster || '/' || member FROM volumes WHERE NOT deleted AND member != ''"),
        volumes=column("SELECT id FROM volumes WHERE NOT deleted"),
        records=column("SELECT name FROM records"),
    )
