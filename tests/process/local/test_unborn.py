"""What an interrupted first `up` leaves may be removed only if none of it can be data."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from protokube.errors import Refused
from protokube.local import unborn
from protokube.local.base.db import Database
from protokube.local.base.paths import Paths
from protokube.members.founding import first_generation
from protokube.members.generation import encode
from protokube.store import layout
from protokube.store.file import FileStore

RECORD = first_generation("main", "token", {"a": "vol-1"}, "0123456789ab")


@pytest.fixture
def begun(tmp_path: Path) -> Paths:
    """A cluster with one disk, an open generation record, and nothing on either."""
    paths = Paths.at(tmp_path / "begun")
    paths.create()
    with paths.image("vol-1").open("wb") as image:
        image.truncate(1 << 20)
    mark(paths, "")
    FileStore(paths.store).create(layout.etcd_generation("begun", "main"), encode(RECORD))
    return paths


def mark(paths: Paths, text: str, *, deleted: int = 0) -> None:
    """What the agents have said of the disk."""
    database = Database(paths.database)
    with database.transaction() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO volumes (id, zone, etcd_cluster, member, members, size, founder, request, mark,"
            " deleted) VALUES ('vol-1', 'local', 'main', 'a', '[]', 1048576, 1, 'main/a', ?, ?)",
            (text, deleted),
        )
    database.close()


def write_to_disk(paths: Paths) -> None:
    with paths.image("vol-1").open("r+b") as image:
        image.write(b"data")


def test_a_blank_disk_and_an_open_record_are_no_data(begun: Paths) -> None:
    assert unborn.why_kept(begun) == ""


def test_a_disk_that_was_being_formatted_is_no_data_either(begun: Paths) -> None:
    mark(begun, "formatting:master-a-1")
    write_to_disk(begun)

    assert unborn.why_kept(begun) == ""


@pytest.mark.parametrize("text", ["forming", "formed", "formed-by-somebody"])
@pytest.mark.parametrize("deleted", [0, 1])
def test_a_disk_that_began_to_form_is_kept_also_if_it_was_deleted_since(begun: Paths, text: str, deleted: int) -> None:
    mark(begun, text, deleted=deleted)

    assert unborn.why_kept(begun) == f"volume vol-1 is marked {text}"


def test_a_disk_without_a_mark_that_somebody_wrote_to_is_kept(begun: Paths) -> None:
    write_to_disk(begun)

    assert unborn.why_kept(begun) == f"{begun.image('vol-1')} was written to"


def test_a_disk_that_the_cloud_does_not_know_is_kept_if_it_was_written_to(begun: Paths) -> None:
    begun.image("vol-2").write_bytes(b"a copy of somebody's disk")

    assert "vol-2.img was written to" in unborn.why_kept(begun)


def test_a_closed_record_is_kept_whatever_the_disks_say(begun: Paths) -> None:
    store, path = FileStore(begun.store), layout.etcd_generation("begun", "main")
    store.replace(path, encode(RECORD.closed()), store.read(path).version)

    assert unborn.why_kept(begun) == f"{path} is closed"


def test_a_record_that_cannot_be_read_counts_as_closed(begun: Paths) -> None:
    store, path = FileStore(begun.store), layout.etcd_generation("begun", "main")
    store.replace(path, b"{", store.read(path).version)

    assert unborn.why_kept(begun) == f"{path} is damaged"


def test_a_database_that_cannot_be_read_says_nothing_of_the_disks(begun: Paths) -> None:
    begun.database.write_bytes(b"no database at all" * 1000)

    assert "cannot be read" in unborn.why_kept(begun)


def test_a_mark_that_a_killed_daemon_left_in_the_log_of_its_database_counts(begun: Paths, tmp_path: Path) -> None:
    """What SQLite had not yet written into the database itself when the power went off."""
    database, killed = Database(begun.database), Paths.at(tmp_path / "killed")
    with database.transaction() as connection:
        connection.execute("UPDATE volumes SET mark = 'forming'")
    killed.create()
    for suffix in ("", "-wal"):
        shutil.copy(f"{begun.database}{suffix}", f"{killed.database}{suffix}")
    database.close()

    assert unborn.why_kept(killed) == "volume vol-1 is marked forming"


@pytest.mark.parametrize("change", ["DROP COLUMN mark", "RENAME COLUMN mark TO state"])
def test_marks_of_another_version_that_cannot_be_read_count(begun: Paths, change: str) -> None:
    with closing(sqlite3.connect(begun.database)) as connection:
        connection.execute(f"ALTER TABLE volumes {change}")

    assert "cannot be read" in unborn.why_kept(begun)


def test_a_record_of_a_later_version_counts_as_closed(begun: Paths) -> None:
    store, path = FileStore(begun.store), layout.etcd_generation("begun", "main")
    store.replace(path, encode(RECORD).replace(b'"version": 2', b'"version": 99'), store.read(path).version)

    assert unborn.why_kept(begun) == f"{path} is damaged"


def test_a_disk_that_is_elsewhere_and_cannot_be_read_counts(begun: Paths) -> None:
    """As by a link into a file system that is not mounted."""
    begun.image("vol-1").unlink()
    begun.image("vol-1").symlink_to("/nowhere/vol-1.img")

    assert unborn.why_kept(begun) == f"{begun.image('vol-1')} cannot be read: No such file or directory"


def test_a_disk_that_was_renamed_counts(begun: Paths) -> None:
    mark(begun, "formatting:master-a-1")
    write_to_disk(begun)
    begun.image("vol-1").rename(begun.disks / "kept")

    assert unborn.why_kept(begun) == f"{begun.disks}/kept was written to"


@pytest.mark.parametrize("database", ["missing", "empty"])
def test_before_the_daemon_made_its_tables_there_are_no_disks(tmp_path: Path, database: str) -> None:
    paths = Paths.at(tmp_path / "begun")
    paths.create()
    if database == "empty":
        paths.database.touch()

    assert unborn.why_kept(paths) == ""


def test_a_cluster_that_another_up_is_just_making_is_left_alone(begun: Paths) -> None:
    lock, other = unborn.hold(begun), unborn.hold(begun)
    try:
        with pytest.raises(Refused, match="another `up` is just making begun"):
            unborn.discard(begun)
    finally:
        os.close(lock)
        os.close(other)

    assert begun.image("vol-1").exists()
    assert not begun.stopped.exists()


def test_what_may_be_data_is_not_even_stopped(begun: Paths) -> None:
    mark(begun, "forming")

    with pytest.raises(Refused, match="may have data, so it is kept"):
        unborn.discard(begun)

    assert begun.image("vol-1").exists()
    assert not begun.stopped.exists()


def test_a_lock_is_no_lock_of_a_folder_that_was_discarded_meanwhile(begun: Paths) -> None:
    """An `up` that waits while another one discards the cluster then holds the folder that is made anew."""
    discarding = os.open(begun.up_lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(discarding, fcntl.LOCK_EX)
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(unborn.hold, begun)
        until_waited_for(begun.up_lock)
        shutil.rmtree(begun.root)
        os.close(discarding)
        lock = waiting.result(timeout=30)
    try:
        with pytest.raises(Refused, match="another `up` is just making begun"):
            unborn.discard(begun)
    finally:
        os.close(lock)

    assert begun.is_ours(), "created anew"
    assert begun.disks.is_dir()


def until_waited_for(file: Path) -> None:
    """Until somebody waits for the lock on this file: the kernel lists those with an arrow."""
    inode, end = file.stat().st_ino, time.monotonic() + 30
    while not any("->" in line and f":{inode} " in line for line in Path("/proc/locks").read_text().splitlines()):
        assert time.monotonic() < end
        time.sleep(0.01)
