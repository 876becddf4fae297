"""What is special about a store in a folder: modes, links, locks, and a root that is not what it should be."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from protokube.errors import Refused, TryLater
from protokube.store import Changed, NotThere, Version
from protokube.store.atomic import LOCK
from protokube.store.file import FileStore
from protokube.store.open import open_store
from protokube.store.patience import Patience


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=["umask 000", "umask 022", "umask 077"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(root: Path) -> dict[str, str]:
    found = (path for path in root.rglob("*") if path.name != LOCK)
    return {path.relative_to(root).as_posix(): oct(stat.S_IMODE(path.stat().st_mode)) for path in found}


def test_keys_and_secrets_are_their_owners_whatever_the_umask(root: Path, umask: int) -> None:
    store = FileStore(root)
    for path in ("dev/config", "dev/pki/private/ca/1.key", "dev/secrets/admin", "pki/x"):
        store.create(path, b"x")

    assert modes(root) == {
        "dev": "0o755",
        "dev/config": "0o644",
        "dev/pki": "0o700",
        "dev/pki/private": "0o700",
        "dev/pki/private/ca": "0o700",
        "dev/pki/private/ca/1.key": "0o600",
        "dev/secrets": "0o700",
        "dev/secrets/admin": "0o600",
        "pki": "0o700",
        "pki/x": "0o600",
    }


def test_replace_and_put_keep_to_the_same_modes(root: Path, umask: int) -> None:
    store = FileStore(root)
    version = store.create("dev/secrets/admin", b"1")
    (root / "dev/secrets/admin").chmod(0o666)
    store.replace("dev/secrets/admin", b"2", version)
    store.put("dev/secrets/other", b"1")
    store.put("dev/config", b"1")

    found = modes(root)

    assert (found["dev/secrets/admin"], found["dev/secrets/other"], found["dev/config"]) == ("0o600", "0o600", "0o644")


def test_a_file_called_secrets_is_not_a_secret(root: Path) -> None:
    FileStore(root).create("dev/secrets", b"x")

    assert modes(root)["dev/secrets"] == "0o644"


def test_the_mode_of_a_folder_that_was_there_is_left_alone(root: Path) -> None:
    (root / "dev").mkdir(parents=True)
    (root / "dev").chmod(0o750)

    FileStore(root).create("dev/config", b"x")

    assert modes(root)["dev"] == "0o750"


def test_put_of_unchanged_content_touches_nothing_on_the_disk(root: Path) -> None:
    store = FileStore(root)
    store.put("dev/config", b"same")
    before = (root / "dev/config").stat()

    store.put("dev/config", b"same")

    after = (root / "dev/config").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_opening_and_reading_leave_no_trace(root: Path) -> None:
    store = open_store(str(root))

    assert store.list_paths() == ()
    with pytest.raises(NotThere):
        store.read("dev/config")
    with pytest.raises(Changed):
        store.replace("dev/config", b"x", Version("0"))

    assert not root.exists()


@pytest.mark.parametrize("link", ["dev", "dev/config"])
def test_a_symbolic_link_inside_the_store_is_never_followed(root: Path, tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "config").write_bytes(b"precious")
    target = outside if link == "dev" else outside / "config"
    (root / link).parent.mkdir(parents=True)
    (root / link).symlink_to(target)
    store = FileStore(root)

    for attempt in (
        lambda: store.read("dev/config"),
        lambda: store.create("dev/config", b"x"),
        lambda: store.put("dev/config", b"x"),
        lambda: store.replace("dev/config", b"x", Version("0")),
    ):
        with pytest.raises(Refused, match="symbolic link"):
            attempt()

    assert store.list_paths() == ()
    assert (outside / "config").read_bytes() == b"precious"


def test_what_is_neither_file_nor_folder_is_not_listed(root: Path) -> None:
    store = FileStore(root)
    store.create("dev/config", b"x")
    os.mkfifo(root / "dev/pipe")

    assert store.list_paths() == ("dev/config",)


def test_the_store_itself_may_be_reached_through_a_link(root: Path, tmp_path: Path) -> None:
    FileStore(root).create("dev/config", b"x")
    (tmp_path / "alias").symlink_to(root)

    assert FileStore(tmp_path / "alias").list_paths() == ("dev/config",)


def test_a_root_that_is_a_file_is_refused_when_written(root: Path) -> None:
    root.write_bytes(b"not a folder")

    with pytest.raises(Refused, match="cannot create dev/config") as caught:
        FileStore(root).create("dev/config", b"x")

    assert "want: a folder there" in str(caught.value)
    assert root.read_bytes() == b"not a folder"


def test_a_disk_that_refuses_is_explained_without_a_traceback() -> None:
    with pytest.raises((Refused, TryLater)) as caught:
        FileStore(Path("/proc/protokube-state")).create("dev/config", b"x")

    assert str(caught.value).startswith("cannot create dev/config in file:///proc/protokube-state")
    assert "hint:" in str(caught.value)


def test_a_name_is_either_a_file_or_a_folder(root: Path) -> None:
    store = FileStore(root)
    store.create("dev/config", b"x")

    for path, saw in (("dev/config/more", "dev/config is a file"), ("dev", "dev is a folder")):
        for attempt in (store.create, store.put):
            with pytest.raises(Refused, match="either a file or a folder") as caught:
                attempt(path, b"x")
            assert caught.value.saw == saw


def test_a_lock_that_somebody_keeps_is_reported_after_the_time_limit(root: Path) -> None:
    store = FileStore(root, Patience(read=0.1))
    store.put("dev/config", b"x")

    with (root / LOCK).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(TryLater, match="has held the lock") as caught:
            store.put("dev/config", b"y")

    assert "fuser" in caught.value.hint
    assert store.put("dev/config", b"y")


def test_readers_and_creators_do_not_wait_for_the_lock(root: Path) -> None:
    store = FileStore(root, Patience(read=0.1))
    store.put("dev/config", b"x")

    with (root / LOCK).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        assert store.read("dev/config").data == b"x"
        store.create("dev/other", b"y")


def test_a_relative_root_stays_where_it_was_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("state")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    store.create("dev/config", b"x")

    assert (tmp_path / "state/dev/config").read_bytes() == b"x"
    assert store.url == (tmp_path / "state").as_uri()


def test_two_spellings_of_one_folder_are_one_store(tmp_path: Path) -> None:
    open_store(str(tmp_path / "a b")).create("dev/config", b"x")

    assert open_store(f"file://{tmp_path}/a%20b").read("dev/config").data == b"x"
