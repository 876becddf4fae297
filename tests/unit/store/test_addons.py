"""Add-ons in the store, by digest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from builders.addons import an_addon, an_object
from protokube.addons.value import Addon, digest
from protokube.errors import Refused, TryLater
from protokube.store import Unsure, Version
from protokube.store.addons import place, put_addons, read_addons, read_current, read_manifest
from protokube.store.memory import MemoryStore

CURRENT = place("dev", "current")
OLD, NEW = (an_addon("dns", an_object(name)) for name in ("old", "new"))


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    return MemoryStore(str(tmp_path).strip("/").replace("/", "-"))


def test_whoever_is_told_a_digest_reads_exactly_those(store: MemoryStore) -> None:
    of_old, of_new = (put_addons(store, "dev", (each,)) for each in (OLD, NEW))

    assert read_addons(store, "dev", of_old) == (OLD,)
    assert read_addons(store, "dev", of_new) == (NEW,)


def test_putting_them_twice_is_putting_them_once(store: MemoryStore) -> None:
    assert put_addons(store, "dev", (an_addon(),)) == put_addons(store, "dev", (an_addon(),))
    assert len(store.list_paths()) == 2  # the set, and which one is current


def number(store: MemoryStore) -> int:
    current = read_current(store, "dev")
    assert current is not None
    return current.number


def test_what_was_put_last_is_current_and_its_number_rises_only_when_it_changes(store: MemoryStore) -> None:
    assert read_current(store, "dev") is None
    numbers = []
    for addon in (OLD, OLD, NEW, OLD):
        of = put_addons(store, "dev", (addon,))
        current = read_current(store, "dev")
        assert current is not None
        assert current.digest == of
        numbers.append(current.number)

    assert numbers == [1, 1, 2, 3]


class Busy(MemoryStore):
    """Somebody else puts theirs right before we name ours; or our answer is lost."""

    theirs: tuple[Addon, ...] | None = None
    loses_answers = False

    def create(self, path: str, data: bytes) -> Version:
        return self._meanwhile(path, lambda: super(Busy, self).create(path, data))

    def replace(self, path: str, data: bytes, seen: Version) -> Version:
        return self._meanwhile(path, lambda: super(Busy, self).replace(path, data, seen))

    def _meanwhile(self, path: str, write: Callable[[], Version]) -> Version:
        if path != CURRENT:
            return write()
        theirs, self.theirs = self.theirs, None
        if theirs is not None:
            put_addons(self, "dev", theirs)
        version = write()
        if self.loses_answers:
            raise Unsure("no answer")
        return version


@pytest.fixture(params=["the first time", "later"])
def busy(store: MemoryStore, tmp_path: Path, request: pytest.FixtureRequest) -> Busy:
    if request.param == "later":
        put_addons(store, "dev", (an_addon(),))
    return Busy(str(tmp_path).strip("/").replace("/", "-"))


def test_of_two_who_ask_for_different_ones_at_once_the_slower_is_told(busy: Busy) -> None:
    busy.theirs = (OLD,)

    with pytest.raises(TryLater, match="at the same time"):
        put_addons(busy, "dev", (NEW,))

    current = read_current(busy, "dev")
    assert current is not None
    assert current.digest == digest([OLD])


def test_two_who_ask_for_the_same_at_once_are_both_right(busy: Busy) -> None:
    busy.theirs = (NEW,)

    assert put_addons(busy, "dev", (NEW,)) == digest([NEW])


def test_an_answer_that_was_lost_is_no_failure_if_the_write_stands(busy: Busy) -> None:
    busy.loses_answers = True

    assert put_addons(busy, "dev", (NEW,)) == digest([NEW])


def test_what_is_named_current_is_there_already(store: MemoryStore, tmp_path: Path) -> None:
    class Watching(MemoryStore):
        def create(self, path: str, data: bytes) -> Version:
            if path == CURRENT:
                assert read_addons(self, "dev", digest([NEW])) == (NEW,)
            return super().create(path, data)

    put_addons(Watching(str(tmp_path).strip("/").replace("/", "-")), "dev", (NEW,))

    assert number(store) == 1


def test_what_is_current_is_not_written_over_where_it_cannot_be_read(store: MemoryStore) -> None:
    store.put(CURRENT, b"{")

    with pytest.raises(Refused, match="the number of the current add-ons cannot be read"):
        put_addons(store, "dev", (NEW,))

    assert store.read(CURRENT).data == b"{"


def test_a_file_that_was_changed_is_not_applied(store: MemoryStore) -> None:
    of = put_addons(store, "dev", (an_addon(),))
    store.put(place("dev", of), b"[]")

    with pytest.raises(Refused, match="do not match their digest"):
        read_addons(store, "dev", of)


@pytest.mark.parametrize("data", [b"{", b"{}x", b'[{"name": "a"}]', b"[3]"])
def test_a_file_that_was_spoilt_is_told(store: MemoryStore, data: bytes) -> None:
    store.put(place("dev", "0" * 64), data)

    with pytest.raises(Refused, match="the add-ons in the store cannot be read"):
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
