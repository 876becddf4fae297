"""The table of volumes: tags, marks, epochs and holders. Disks are not touched here.

`claim` is the lock between masters: one transaction checks that the claimant was not declared dead, and claims.
Only the holder writes mark and epoch: the transaction that writes also checks who holds the volume.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Sequence

from protokube.errors import Refused, TryLater
from protokube.local.base.db import Database
from protokube.providers.volumes import AttachmentState, Volume, VolumeTaken, epoch_key, need_holder

ALL = """
SELECT *, EXISTS (SELECT 1 FROM hosts WHERE name = attached_to AND dead) AS detaching FROM volumes WHERE NOT deleted
"""
"""A volume of a host that was declared dead is being detached: only then can another host have it."""
ONE = f"{ALL} AND id = ?"


class Volumes:
    """The table of volumes."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def everything(self) -> Sequence[Volume]:
        return [_volume(row) for row in self.database.rows(f"{ALL} ORDER BY id")]

    def look_up(self, volume: str) -> Volume | None:
        found = self.database.rows(ONE, (volume,))
        return _volume(found[0]) if found else None

    def write_tags(self, volume: str, like: Volume, host: str | None = None) -> None:
        """Write tags for the host that holds the volume or, without `host`, for the operator; empty tags untag it."""
        with self.database.transaction() as connection:
            if host is not None:
                _held(connection, volume, host)
            connection.execute(
                "UPDATE volumes SET etcd_cluster = ?, member = ?, members = ? WHERE id = ? AND NOT deleted",
                (like.etcd_cluster, like.member, json.dumps(like.members), volume),
            )

    def deleted(self) -> Sequence[str]:
        return [row["id"] for row in self.database.rows("SELECT id FROM volumes WHERE deleted")]

    def find(self, volume: str) -> Volume:
        return _one(self.database.rows(ONE, (volume,)), volume)

    def made_for(self, request: str, *, founder: bool) -> Volume | None:
        """The volume created for this request, as it was then, whatever has happened to it since."""
        query = "SELECT *, FALSE AS detaching FROM volumes WHERE request = ? AND founder = ?"
        found = self.database.rows(query, (request, founder))
        return _volume(found[0]).as_made() if found else None

    def new_id(self) -> str:
        while self.database.rows("SELECT id FROM volumes WHERE id = ?", (made := f"vol-{secrets.token_hex(4)}",)):
            pass
        return made

    def add(self, volume: str, like: Volume, request: str, *, founder: bool) -> Volume:
        with self.database.transaction() as connection:
            tags = (volume, like.zone, like.etcd_cluster, like.member, json.dumps(like.members), like.size)
            connection.execute(
                "INSERT INTO volumes (id, zone, etcd_cluster, member, members, size, founder, request)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*tags, founder, request),
            )
        return self.find(volume)

    def claim(self, volume: str, host: str) -> bool:
        """Attach it to this host; return whether that is new. VolumeTaken, or TryLater while it is being detached."""
        with self.database.transaction() as connection:
            found = _one(connection.execute(ONE, (volume,)).fetchall(), volume)
            if not _living_master(connection, host):
                raise Refused(f"{host} takes no volume", want="a master that was not declared dead")
            if found.attached_to == host:
                return False
            if found.between:
                raise TryLater(found.between)
            if found.attached_to is not None:
                raise VolumeTaken(f"attached to {found.attached_to}")
            connection.execute("UPDATE volumes SET attached_to = ? WHERE id = ?", (host, volume))
            return True

    def free(self, volume: str, host: str) -> bool:
        """Detach it from this host; return whether it was attached to it."""
        with self.database.transaction() as connection:
            freed = connection.execute(
                "UPDATE volumes SET attached_to = NULL WHERE id = ? AND attached_to = ?", (volume, host)
            )
            return freed.rowcount > 0

    def held_by(self, host: str) -> Sequence[Volume]:
        found = self.database.rows(f"{ALL} AND attached_to = ? ORDER BY id", (host,))
        return [_volume(row) for row in found]

    def write_mark(self, volume: str, mark: str, host: str) -> bool:
        """Set the mark for the host that holds the volume; return whether that changed anything."""
        with self.database.transaction() as connection:
            before = _held(connection, volume, host)
            connection.execute("UPDATE volumes SET mark = ? WHERE id = ?", (mark, volume))
            return before.mark != mark

    def write_epoch(self, volume: str, epoch: int, holder: str, host: str, *, generation: str) -> bool:
        """Raise the epoch for the host that holds the volume; return whether that changed anything."""
        with self.database.transaction() as connection:
            before = _held(connection, volume, host, holder)
            if epoch <= before.epoch_for(generation):
                return False
            connection.execute(
                "UPDATE volumes SET epoch = ?, epoch_of = ?, last_holder = ? WHERE id = ?",
                (epoch, epoch_key(volume, generation), holder, volume),
            )
            return True

    def delete(self, volume: str) -> None:
        with self.database.transaction() as connection:
            connection.execute("UPDATE volumes SET deleted = 1, attached_to = NULL WHERE id = ?", (volume,))


def _living_master(connection: sqlite3.Connection, host: str) -> bool:
    query = "SELECT 1 FROM hosts WHERE name = ? AND master AND NOT dead"
    return connection.execute(query, (host,)).fetchone() is not None


def _held(connection: sqlite3.Connection, volume: str, host: str, holder: str | None = None) -> Volume:
    """The volume, if this host holds it now and was not declared dead; Refused otherwise."""
    found = _one(connection.execute(ONE, (volume,)).fetchall(), volume)
    need_holder(found, host, holder)
    if not _living_master(connection, host):  # declared dead, and its volumes are being detached
        raise Refused(f"{host} writes nothing about {volume}", want="a master that was not declared dead")
    return found


def _one(found: Sequence[sqlite3.Row], volume: str) -> Volume:
    if not found:
        raise Refused(f"there is no volume {volume}")
    return _volume(found[0])


def _volume(row: sqlite3.Row) -> Volume:
    return Volume(
        id=row["id"],
        zone=row["zone"],
        etcd_cluster=row["etcd_cluster"],
        member=row["member"],
        members=tuple(json.loads(row["members"])),
        size=row["size"],
        made_empty=True,
        attached_to=row["attached_to"],
        mark=row["mark"],
        epoch=row["epoch"],
        epoch_of=row["epoch_of"],
        last_holder=row["last_holder"],
        tagged=bool(row["etcd_cluster"]),
        request=_request(row),
        state=AttachmentState.DETACHING if row["detaching"] else AttachmentState.SETTLED,
    )


def _request(row: sqlite3.Row) -> str:
    return "" if row["founder"] else row["request"]
