"""The database of the local cloud loses nothing when the daemon is killed."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from protokube.local.base.db import Database, KeptRecords
from protokube.local.cloud.volumes import Volumes
from protokube.records import Change, Record


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "cloud.sqlite")
    yield made
    made.close()


def a_record(name: str = "a.dev", *values: str, kind: str = "A", ttl: int = 5) -> Record:
    return Record(name=name, type=kind, values=values or ("10.0.0.1",), ttl=ttl)


def change(before: Record | None, after: Record | None) -> Change:
    return Change(before=before, after=after, why="a test")


def test_a_setting_is_what_was_last_written(database: Database) -> None:
    assert database.setting("paused", False) is False

    database.set("paused", True)
    database.set("zones", ["dev"])
    database.set("zones", ["dev", "test"])

    assert database.setting("paused", False) is True
    assert database.setting("zones", []) == ["dev", "test"]


FORMER = """
CREATE TABLE volumes (
    id TEXT PRIMARY KEY, zone TEXT NOT NULL, etcd_cluster TEXT NOT NULL, member TEXT NOT NULL, members TEXT NOT NULL,
    size INTEGER NOT NULL, attached_to TEXT, mark TEXT NOT NULL DEFAULT '', epoch INTEGER NOT NULL DEFAULT 0,
    last_holder TEXT NOT NULL DEFAULT '', founder INTEGER NOT NULL, request TEXT NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0, UNIQUE (founder, request)
);
INSERT INTO volumes VALUES
    ('vol-1', 'local', 'main', 'a', '["a", "b", "c"]', 1073741824, NULL, 'formed', 4, 'host-1', 1, 'main/a', 0);
"""
"""The volumes as a version without `epoch_of` kept them."""


def test_a_database_of_a_former_version_is_opened_and_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "cloud.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FORMER)

    for _ in range(2):  # a second opening finds nothing left to do
        with closing(Database(path)) as database:
            (volume,) = Volumes(database).everything()
            assert (volume.id, volume.epoch, volume.last_holder, volume.epoch_of) == ("vol-1", 4, "host-1", "")
            assert volume.epoch_for("g1") == 4

    with closing(Database(path)) as database:
        volumes = Volumes(database)
        with database.transaction() as connection:
            connection.execute(
                "INSERT INTO hosts (name, grp, zone, master, address, number) VALUES ('host-2', 'g', 'z', 1, 'x', 1)"
            )
        volumes.claim("vol-1", "host-2")
        assert not volumes.write_epoch("vol-1", 4, "host-2", "host-2", generation="g1")
        assert volumes.write_epoch("vol-1", 5, "host-2", "host-2", generation="g1")
        assert (volumes.find("vol-1").epoch, volumes.find("vol-1").epoch_of) == (5, "vol-1/g1")


def test_a_transaction_that_fails_leaves_nothing(database: Database) -> None:
    def fail() -> None:
        with database.transaction() as connection:
            connection.execute("INSERT INTO settings VALUES ('half', '1')")
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail()

    assert database.setting("half", None) is None
    database.set("after", 1)
    assert database.setting("after", None) == 1


def test_transactions_of_many_threads_do_not_mix(database: Database) -> None:
    database.set("count", 0)

    def count() -> None:
        for _ in range(25):
            with database.transaction() as connection:
                value = int(connection.execute("SELECT value FROM settings WHERE key = 'count'").fetchone()[0])
                connection.execute("UPDATE settings SET value = ? WHERE key = 'count'", (str(value + 1),))

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert database.setting("count", None) == 200


def test_a_volume_cannot_be_attached_to_a_host_that_never_was(database: Database) -> None:
    row = ("vol-1", "local", "main", "a", "[]", 4096, "nobody", 1, "r")
    columns = "id, zone, etcd_cluster, member, members, size, attached_to, founder, request"

    with pytest.raises(sqlite3.IntegrityError), database.transaction() as connection:
        connection.execute(f"INSERT INTO volumes ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def test_records_come_back_as_they_were_saved(database: Database) -> None:
    kept = KeptRecords(database)
    records = [
        a_record("a.dev", "10.0.0.1", "10.0.0.2"),
        a_record("a.dev", '"text with spaces"', kind="TXT", ttl=60),
        a_record("b.dev", "10.0.0.3"),
    ]

    kept.save([change(None, record) for record in records])

    assert list(kept.load()) == records
    assert list(KeptRecords(database).load()) == records


def test_a_change_replaces_every_value_of_its_name_and_type_only(database: Database) -> None:
    kept = KeptRecords(database)
    old, text = a_record("a.dev", "10.0.0.1", "10.0.0.2"), a_record("a.dev", '"x"', kind="TXT")
    kept.save([change(None, old), change(None, text)])

    new = a_record("a.dev", "10.0.0.2", "10.0.0.9", ttl=10)
    kept.save([change(old, new)])

    assert list(kept.load()) == [new, text]
    kept.save([change(new, None)])
    assert list(kept.load()) == [text]


def test_a_batch_of_records_is_kept_whole_or_not_at_all(database: Database) -> None:
    kept = KeptRecords(database)
    bad = Record(name="b.dev", type="A", values=("10.0.0.1", "10.0.0.1"), ttl=5)

    with pytest.raises(sqlite3.IntegrityError):
        kept.save([change(None, a_record("a.dev")), change(None, bad)])

    assert list(kept.load()) == []


def test_the_addresses_of_a_name_are_those_of_its_a_record(database: Database) -> None:
    kept = KeptRecords(database)
    kept.save(
        [change(None, a_record("a.dev", "10.0.0.2", "10.0.0.1")), change(None, a_record("a.dev", '"x"', kind="TXT"))]
    )

    assert kept.addresses("a.dev") == ["10.0.0.1", "10.0.0.2"]
    assert kept.addresses("b.dev") == []
