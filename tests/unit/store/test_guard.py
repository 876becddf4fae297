"""A store that ignores conditions is detected."""

from __future__ import annotations

from itertools import count

import pytest

from protokube.errors import Refused
from protokube.store import AlreadyThere, Changed, Version
from protokube.store.guard import PROBE, prove_guard
from protokube.store.memory import MemoryStore

_NUMBERS = count()


def a_name() -> str:
    return f"guard-{next(_NUMBERS)}"


class IgnoresCreate(MemoryStore):
    """Like a server that accepts If-None-Match and does not look at it."""

    def create(self, path: str, data: bytes) -> Version:
        self.put(path, data)
        return self.read(path).version


class IgnoresReplace(MemoryStore):
    """Like a server that accepts If-Match and does not look at it."""

    def replace(self, path: str, data: bytes, seen: Version) -> Version:
        self.put(path, data)
        return self.read(path).version


class Rival(MemoryStore):
    """A store in which somebody else proves the same thing at the worst moments."""

    def create(self, path: str, data: bytes) -> Version:
        MemoryStore(self.url.removeprefix("memory://")).put(path, b"theirs first")
        return super().create(path, data)

    def replace(self, path: str, data: bytes, seen: Version) -> Version:
        MemoryStore(self.url.removeprefix("memory://")).put(path, b"theirs again")
        return super().replace(path, data, seen)


def test_a_store_that_guards_is_believed_as_often_as_one_asks() -> None:
    store = MemoryStore(a_name())

    for _ in range(3):
        prove_guard(store)

    assert store.list_paths() == (PROBE,)


def test_a_store_that_creates_twice_is_refused() -> None:
    with pytest.raises(Refused, match="refusing to rely on memory://guard") as caught:
        prove_guard(IgnoresCreate(a_name()))

    assert "created the same file twice" in caught.value.saw
    assert caught.value.hint


def test_a_store_that_replaces_the_past_is_refused() -> None:
    with pytest.raises(Refused, match="refusing to rely on") as caught:
        prove_guard(IgnoresReplace(a_name()))

    assert "had changed in between" in caught.value.saw


def test_two_who_prove_at_once_do_not_confuse_each_other() -> None:
    prove_guard(Rival(a_name()))


def test_losing_is_told_apart_from_an_error_by_its_class() -> None:
    """What callers rely on: the two ways to lose are no accident of one backend."""
    store = MemoryStore(a_name())
    past = store.create("dev/config", b"1")
    store.replace("dev/config", b"2", past)

    with pytest.raises(AlreadyThere):
        store.create("dev/config", b"3")
    with pytest.raises(Changed):
        store.replace("dev/config", b"3", past)
