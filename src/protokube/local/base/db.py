"""The state of the local cloud: one SQLite file, so that a daemon killed at any moment resumes where it was.

Every decision between two machines is one `BEGIN IMMEDIATE` transaction. Facts that the kernel knows better (running
processes, bound devices) are not stored.

The file holds the DNS update key, so it is made private before SQLite opens it: SQLite creates its -wal and -shm files
with the mode of the database file, whatever the umask.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from protokube.local.base import private
from protokube.records import Change, Record

IN_MEMORY = Path(":memory:")
"""SQLite's name for a database in memory."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS groups (name TEXT PRIMARY KEY, size INTEGER NOT NULL, template TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS hosts (
    name TEXT PRIMARY KEY,
    grp TEXT NOT NULL,
    zone TEXT NOT NULL,
    master INTEGER NOT NULL,
    address TEXT NOT NULL,
    pid INTEGER,                     -- of its init; nothing before it was started
    started INTEGER,                 -- when that process began: a pid alone is used again
    dead INTEGER NOT NULL DEFAULT 0, -- declared dead, for good
    number INTEGER NOT NULL UNIQUE   -- in the order they were made
);
CREATE TABLE IF NOT EXISTS volumes (
    id TEXT PRIMARY KEY,
    zone TEXT NOT NULL,
    etcd_cluster TEXT NOT NULL,
    member TEXT NOT NULL,
    members TEXT NOT NULL,
    size INTEGER NOT NULL,
    attached_to TEXT REFERENCES hosts(name),
    mark TEXT NOT NULL DEFAULT '',
    epoch INTEGER NOT NULL DEFAULT 0,
    last_holder TEXT NOT NULL DEFAULT '',
    epoch_of TEXT NOT NULL DEFAULT '',  -- the volume and generation that the epoch was written for
    founder INTEGER NOT NULL,           -- made by the operator, for a cluster to begin with
    request TEXT NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0, -- the row stays: an id is never used again
    UNIQUE (founder, request)
);
CREATE TABLE IF NOT EXISTS records (
    name TEXT NOT NULL, type TEXT NOT NULL, ttl INTEGER NOT NULL, value TEXT NOT NULL, UNIQUE (name, type, value)
);
CREATE TABLE IF NOT EXISTS forwards (
    name TEXT NOT NULL, port INTEGER NOT NULL, local_port INTEGER NOT NULL UNIQUE, PRIMARY KEY (name, port)
);
CREATE TABLE IF NOT EXISTS exposed (
    address TEXT NOT NULL, local_port INTEGER NOT NULL, -- of the user's machine
    namespace TEXT NOT NULL, service TEXT NOT NULL, port TEXT NOT NULL, -- a Service, and the number or name of its port
    PRIMARY KEY (address, local_port)
);
"""


class Database:
    """One connection for all threads; transactions are serialized."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        if path != IN_MEMORY:
            os.close(private.open_file(path, os.O_RDWR))
        self._connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")  # a mark or an epoch must not be lost
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
        self._add_columns()

    def _add_columns(self) -> None:
        """Add columns that a database of an older version lacks."""
        with self.transaction() as connection:
            known = {row["name"] for row in connection.execute("PRAGMA table_info(volumes)")}
            if "epoch_of" not in known:
                connection.execute("ALTER TABLE volumes ADD COLUMN epoch_of TEXT NOT NULL DEFAULT ''")

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """An atomic, exclusive transaction."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def rows(self, query: str, values: Sequence[object] = ()) -> list[sqlite3.Row]:
        with self._lock, closing(self._connection.execute(query, values)) as found:
            return found.fetchall()

    def setting(self, key: str, default: Any) -> Any:
        found = self.rows("SELECT value FROM settings WHERE key = ?", (key,))
        return json.loads(found[0]["value"]) if found else default

    def set(self, key: str, value: Any) -> None:
        with self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (key, json.dumps(value)))


class KeptRecords:
    """Storage of the embedded name server's records across restarts of the daemon."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def load(self) -> Sequence[Record]:
        found: dict[tuple[str, str, int], list[str]] = {}
        for row in self.database.rows("SELECT * FROM records ORDER BY name, type, value"):
            found.setdefault((row["name"], row["type"], row["ttl"]), []).append(row["value"])
        return [Record(name=name, type=kind, ttl=ttl, values=tuple(v)) for (name, kind, ttl), v in found.items()]

    def save(self, changes: Iterable[Change]) -> None:
        with self.database.transaction() as connection:
            for change in changes:
                if change.before is not None:
                    at = (change.before.name, change.before.type)
                    connection.execute("DELETE FROM records WHERE name = ? AND type = ?", at)
                if change.after is not None:
                    after = change.after
                    connection.execute("DELETE FROM records WHERE name = ? AND type = ?", (after.name, after.type))
                    rows = [(after.name, after.type, after.ttl, value) for value in after.values]
                    connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?)", rows)

    def addresses(self, name: str) -> Sequence[str]:
        found = self.database.rows("SELECT value FROM records WHERE name = ? AND type = 'A' ORDER BY value", (name,))
        return [row["value"] for row in found]
