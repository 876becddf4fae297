"""What a shell offers for names of clusters, hosts, members, volumes and records: at once, and silent when in doubt."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from builders.command import process
from protokube.local.base.db import Database
from protokube.local.base.paths import Paths

HOSTS = ("master-a-1x2y", "master-b-3z4w")
LONGEST = 2.0
"""Seconds for a whole process on a busy machine; alone it takes 0.2."""


def write_cluster(state: Path, name: str) -> Paths:
    paths = Paths.at(state / name)
    paths.create()
    database = Database(paths.database)
    with database.transaction() as connection:
        for number, host in enumerate((*HOSTS, "master-a-dead")):
            connection.execute(
                "INSERT INTO hosts (name, grp, zone, master, address, number, dead) VALUES (?, 'a', 'z', 1, 'x', ?, ?)",
                (host, number, host.endswith("dead")),
            )
        for member in "ab":
            connection.execute(
                "INSERT INTO volumes (id, zone, etcd_cluster, member, members, size, founder, request)"
                " VALUES (?, 'z', 'main', ?, '[]', 1, 1, ?)",
                (f"vol-{member}", member, member),
            )
        connection.execute("INSERT INTO records VALUES ('etcd-a.internal.one', 'A', 5, '10.77.0.11')")
    database.close()
    return paths


@pytest.fixture
def state(tmp_path: Path) -> Path:
    write_cluster(tmp_path, "one")
    return tmp_path


def offered(state: Path, *words: str) -> list[str]:
    env = {"_PROTOKUBE_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    began = time.monotonic()
    answer = process(env={**env, "PROTOKUBE_STATE": str(state)})
    assert (answer.code, answer.err) == (0, "")
    assert time.monotonic() - began < LONGEST
    return [line.partition(",")[2] for line in answer.out.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("status", "--cluster", ""), ["one"]),
        (("down", "--cluster", "o"), ["one"]),
        (("drill", "kill-master", "--member", ""), ["main/a", "main/b"]),
        (("drill", "kill"), ["kill-master"]),
        (("etcd", "adopt", "vol-b"), ["vol-b"]),
        (("explain", "volume", ""), ["vol-a", "vol-b"]),
        (("explain", "member", "main/b"), ["main/b"]),
        (("explain", "record", "etcd"), ["etcd-a.internal.one"]),
        (("explain", "member", "--store", "file:///nowhere", ""), []),
    ],
)
def test_names_of_the_only_cluster_are_offered(state: Path, words: tuple[str, ...], found: list[str]) -> None:
    assert offered(state, "protokube", *words) == found


def test_with_several_clusters_names_are_offered_once_one_is_chosen(state: Path) -> None:
    write_cluster(state, "two")

    assert offered(state, "protokube", "status", "--cluster", "") == ["one", "two"]
    assert offered(state, "protokube", "explain", "volume", "") == []
    assert offered(state, "protokube", "explain", "--cluster", "two", "volume", "vol-a") == ["vol-a"]
    assert offered(state, "protokube", "explain", "--cluster", "three", "volume", "") == []


@pytest.mark.parametrize("damage", ["missing", "garbage", "folder", "locked"])
def test_a_database_that_cannot_be_read_offers_nothing_and_says_nothing(state: Path, damage: str) -> None:
    database = state / "one" / "cloud.sqlite"
    holder = None
    if damage == "locked":
        holder = Database(database)
        holder._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder._connection.execute("BEGIN EXCLUSIVE")
    else:
        database.unlink()
    if damage == "garbage":
        database.write_bytes(os.urandom(8192))
    if damage == "folder":
        database.mkdir()
    try:
        assert offered(state, "protokube", "explain", "volume", "") in ([], ["vol-a", "vol-b"])
    finally:
        if holder:
            holder._connection.execute("ROLLBACK")
            holder.close()
    assert damage != "missing" or not database.exists()
