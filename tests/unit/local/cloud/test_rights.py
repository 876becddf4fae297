"""The state of an older version, open to every user, is closed; what a host writes itself is left alone."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from protokube.local.base.db import Database
from protokube.local.base.paths import Paths
from protokube.local.cloud.rights import database_files, tighten

FILES = (
    *("cloud.sqlite", "cloud.sqlite-wal", "cloud.sqlite-shm", "daemon.log", "admin.sock"),
    *("disks/vol-1.img", "client/client.key", "client/kubeconfig"),
    *("hosts/master-a-1/cloud.sock", "hosts/master-a-1/log/init.log"),
    *("store/dev/secrets/dns-update-key", "store/dev/pki/private/ca/1.key"),
)


@pytest.fixture
def old(tmp_path: Path) -> Paths:
    """As an older version left it, with every folder and file open."""
    paths = Paths.at(tmp_path / "dev")
    paths.create()
    for name in (*FILES, "hosts/master-a-1/etc/passwd", "store/dev/config"):
        (paths.root / name).parent.mkdir(parents=True, exist_ok=True)
        (paths.root / name).touch()
    for each in (paths.root, *paths.root.rglob("*")):
        each.chmod(0o755 if each.is_dir() else 0o644)
    return paths


def is_open(path: Path) -> bool:
    return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)


def test_everything_that_holds_a_key_or_leads_to_one_is_closed(old: Paths) -> None:
    closed = {str(each) for each in tighten(old)}

    assert closed >= {".", "disks", "store", "hosts", "client", "images", "hosts/master-a-1", "store/dev/pki", *FILES}
    assert [name for name in closed if is_open(old.root / name)] == []
    assert tighten(old) == []


def test_what_a_host_writes_itself_is_not_touched_and_no_link_is_followed(old: Paths, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch(mode=0o644)
    (old.disks / "vol-2.img").symlink_to(tmp_path / "elsewhere")

    tighten(old)

    assert is_open(old.host("master-a-1") / "etc/passwd")
    assert is_open(tmp_path / "elsewhere")


def test_a_state_that_is_not_there_yet_has_nothing_to_close(tmp_path: Path) -> None:
    paths = Paths.at(tmp_path / "dev")
    paths.create()

    assert tighten(paths) == []


def test_a_database_and_the_files_beside_it_are_closed_from_the_first_moment_on(tmp_path: Path) -> None:
    path = tmp_path / "cloud.sqlite"
    database = Database(path)
    database.set("dns keys", ["a secret"])

    there = [each for each in database_files(path) if each.exists()]

    assert {each.name for each in there} >= {"cloud.sqlite", "cloud.sqlite-wal", "cloud.sqlite-shm"}
    assert [each for each in there if is_open(each)] == []
    database.close()


def test_a_database_of_an_older_version_is_closed_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "cloud.sqlite"
    Database(path).close()
    path.chmod(0o644)

    database = Database(path)
    database.set("dns keys", ["a secret"])

    assert [each for each in database_files(path) if each.exists() and is_open(each)] == []
    database.close()
