"""Add-ons in the store, by what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers_addons import an_addon, an_object
from protokube.errors import InvalidRequest, Refused
from protokube.store.addons import place, put_addons, read_addons, read_manifest
from protokube.store.memory import MemoryStore


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    return MemoryStore(str(tmp_path).strip("/").replace("/", "-"))


def test_whoever_is_told_a_digest_reads_exactly_those(store: MemoryStore) -> None:
    old, new = (an_addon("dns", an_object(name)) for name in ("old", "new"))

    of_old, of_new = (put_addons(store, "dev", (each,)) for each in (old, new))

    assert read_addons(store, "dev", of_old) == (old,)
    assert read_addons(store, "dev", of_new) == (new,)


def test_putting_them_twice_is_putting_them_once(store: MemoryStore) -> None:
    assert put_addons(store, "dev", (an_addon(),)) == put_addons(store, "dev", (an_addon(),))
    assert len(store.list_paths()) == 1


def test_a_file_that_was_changed_is_not_applied(store: MemoryStore) -> None:
    of = put_addons(store, "dev", (an_addon(),))
    store.put(place("dev", of), b"[]")

    with pytest.raises(Refused, match="not those that were asked for"):
        read_addons(store, "dev", of)


@pytest.mark.parametrize("data", [b"{", b"{}x", b'[{"name": "a"}]', b"[3]"])
def test_a_file_that_was_spoilt_is_told(store: MemoryStore, data: bytes) -> None:
    store.put(place("dev", "0" * 64), data)

    with pytest.raises(InvalidRequest, match="no add-ons"):
        read_addons(store, "dev", "0" * 64)


def test_a_manifest_is_read_from_any_kind_of_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "web.yaml").write_text("a: b")
    monkeypatch.chdir(tmp_path)

    assert {read_manifest(each) for each in (f"file://{tmp_path}/web.yaml", f"{tmp_path}/web.yaml", "web.yaml")} == {
        "a: b"
    }


def test_a_manifest_that_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_bytes(b"\xff")

    with pytest.raises(Refused, match="no text"):
        read_manifest(f"{tmp_path}/web.yaml")
