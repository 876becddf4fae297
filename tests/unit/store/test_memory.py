"""What is special about the store in memory: names, prefixes, and the strictness of a disk."""

from __future__ import annotations

import pytest

from protokube.errors import Refused
from protokube.store import Changed, NotThere, Version
from protokube.store.memory import MemoryStore
from protokube.store.open import open_store


def test_stores_of_one_name_share_their_content_and_others_do_not() -> None:
    open_store("memory://shared").put("dev/config", b"x")

    assert open_store("memory://shared").read("dev/config").data == b"x"
    assert open_store("memory://unshared").list_paths() == ()


def test_a_prefix_is_a_folder_of_the_whole() -> None:
    MemoryStore("prefixed", "a/b").put("dev/config", b"x")

    assert MemoryStore("prefixed").list_paths() == ("a/b/dev/config",)
    assert MemoryStore("prefixed", "a").read("b/dev/config").data == b"x"
    assert MemoryStore("prefixed", "a/b2").list_paths() == ()


def test_it_refuses_what_a_disk_could_not_hold() -> None:
    store = MemoryStore("strict")
    store.put("dev/config", b"x")

    for path in ("dev", "dev/config/more"):
        for write in (store.put, store.create):
            with pytest.raises(Refused, match="either a file or a folder"):
                write(path, b"y")

    assert store.list_paths() == ("dev/config",)


def test_the_same_content_written_anew_has_a_new_version() -> None:
    store = MemoryStore("versions")
    first = store.create("x", b"a")
    second = store.replace("x", b"b", first)
    third = store.replace("x", b"a", second)

    assert len({first, second, third}) == 3
    with pytest.raises(Changed) as caught:
        store.replace("x", b"c", first)
    assert caught.value.saw == f"version {third} instead of {first}"


def test_replacing_nothing_says_that_it_is_gone() -> None:
    with pytest.raises(Changed) as caught:
        MemoryStore("gone").replace("x", b"y", Version("1"))

    assert caught.value.saw == "it is gone"


def test_an_error_names_the_store_as_it_was_opened() -> None:
    with pytest.raises(NotThere, match="dev/config is not in memory://named/prefix"):
        MemoryStore("named", "prefix").read("dev/config")
