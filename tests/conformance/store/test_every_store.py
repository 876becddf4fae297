"""What every writable store does, whatever lies behind it."""

from __future__ import annotations

import time

import pytest

from protokube.errors import Refused, TryLater
from protokube.store import AlreadyThere, Changed, NotThere, Store, Version
from protokube.store.guard import PROBE, prove_guard

CONFIG = "dev.example.com/config"
ALL_BYTES = bytes(range(256)) * 5


def test_what_was_created_can_be_read(store: Store) -> None:
    version = store.create(CONFIG, b"kind: Cluster\n")

    found = store.read(CONFIG)

    assert (found.path, found.data, found.version) == (CONFIG, b"kind: Cluster\n", version)


@pytest.mark.parametrize("data", [b"", ALL_BYTES, b"x" * 300_000], ids=["empty", "every byte", "large"])
def test_content_comes_back_byte_for_byte(store: Store, data: bytes) -> None:
    store.create("dev/blob", data)

    assert store.read("dev/blob").data == data


def test_what_was_written_tells_when(store: Store, again: Store) -> None:
    before = time.time()
    version = store.create(CONFIG, b"one")
    first = again.read(CONFIG).modified
    again.replace(CONFIG, b"two", version)
    second = store.read(CONFIG).modified

    assert first is not None
    assert second is not None
    assert before - 1.1 <= first <= second <= time.time() + 1.1, "some stores count whole seconds"


def test_reading_what_is_not_there_says_so_and_names_path_and_store(store: Store) -> None:
    with pytest.raises(NotThere) as caught:
        store.read(CONFIG)

    assert CONFIG in str(caught.value)
    assert store.url in str(caught.value)


def test_a_folder_is_not_a_file(store: Store) -> None:
    store.create(CONFIG, b"x")

    with pytest.raises(NotThere):
        store.read("dev.example.com")


def test_below_a_file_there_is_nothing(store: Store) -> None:
    store.create(CONFIG, b"x")

    with pytest.raises(NotThere):
        store.read(CONFIG + "/more")


def test_creating_twice_leaves_the_first_content(store: Store, again: Store) -> None:
    store.create(CONFIG, b"first")

    with pytest.raises(AlreadyThere) as caught:
        again.create(CONFIG, b"second")

    assert isinstance(caught.value, Refused)
    assert store.read(CONFIG).data == b"first"


def test_creating_the_same_content_twice_is_still_the_second_time(store: Store, again: Store) -> None:
    store.create(CONFIG, b"same")

    with pytest.raises(AlreadyThere):
        again.create(CONFIG, b"same")


def test_replacing_what_was_read_writes_it(store: Store, again: Store) -> None:
    store.create(CONFIG, b"old")

    version = store.replace(CONFIG, b"new", store.read(CONFIG).version)

    assert again.read(CONFIG).data == b"new"
    assert again.read(CONFIG).version == version


def test_the_version_that_create_returns_is_good_for_a_replace(store: Store) -> None:
    first = store.create(CONFIG, b"one")
    second = store.replace(CONFIG, b"two", first)
    store.replace(CONFIG, b"three", second)

    assert store.read(CONFIG).data == b"three"


def test_replacing_with_a_version_of_the_past_changes_nothing(store: Store, again: Store) -> None:
    past = store.create(CONFIG, b"old")
    again.replace(CONFIG, b"theirs", past)

    with pytest.raises(Changed) as caught:
        store.replace(CONFIG, b"ours", past)

    assert isinstance(caught.value, TryLater)
    assert CONFIG in str(caught.value)
    assert "read it again" in str(caught.value)
    assert store.read(CONFIG).data == b"theirs"


def test_replacing_what_is_not_there_creates_nothing(store: Store) -> None:
    version = store.create("dev/other", b"x")

    with pytest.raises(Changed):
        store.replace(CONFIG, b"new", version)

    assert store.list_paths() == ("dev/other",)


def test_replacing_with_a_version_of_another_file_changes_nothing(store: Store) -> None:
    store.create(CONFIG, b"old")
    other = store.create("dev/other", b"something else")

    with pytest.raises(Changed):
        store.replace(CONFIG, b"new", other)

    assert store.read(CONFIG).data == b"old"


def test_putting_says_whether_it_wrote(store: Store) -> None:
    wrote = [store.put(CONFIG, b"one"), store.put(CONFIG, b"one"), store.put(CONFIG, b"two"), store.put(CONFIG, b"one")]

    assert wrote == [True, False, True, True]


def test_putting_unchanged_content_keeps_the_version(store: Store, again: Store) -> None:
    store.put(CONFIG, b"same")
    before = store.read(CONFIG).version

    again.put(CONFIG, b"same")

    assert store.read(CONFIG).version == before
    store.replace(CONFIG, b"new", before)


def test_a_put_in_between_is_noticed_by_replace(store: Store, again: Store) -> None:
    seen = store.create(CONFIG, b"old")
    again.put(CONFIG, b"put")

    with pytest.raises(Changed):
        store.replace(CONFIG, b"new", seen)


def test_a_new_store_lists_nothing(store: Store) -> None:
    assert store.list_paths() == ()
    assert store.list_paths("dev") == ()


def test_the_list_is_complete_sorted_and_the_same_for_everybody(store: Store, again: Store) -> None:
    paths = ["b/config", "a/z", "a/config", "a/instancegroup/nodes", "a/instancegroup/masters", "c", "a.b/config"]
    for path in paths:
        store.put(path, b"x")

    assert store.list_paths() == tuple(sorted(paths))
    assert again.list_paths() == tuple(sorted(paths))


def test_listing_a_folder_leaves_out_names_that_only_begin_like_it(store: Store) -> None:
    for path in ("dev/config", "dev2/config", "de", "dev/instancegroup/nodes", "other/dev/config"):
        store.put(path, b"x")

    assert store.list_paths("dev") == ("dev/config", "dev/instancegroup/nodes")


def test_listing_a_file_as_a_folder_gives_nothing(store: Store) -> None:
    store.put("dev/config", b"x")

    assert store.list_paths("dev/config") == ()


@pytest.mark.parametrize(
    "name",
    ["a b", "a+b", "a%2Fb", "a?b", "a#b", "a&b=c", "ünï", "日本", "a\\b", "*", "~", ".hidden", "a:b", "-", "'\""],
)
def test_odd_names_are_kept_as_they_are(store: Store, name: str) -> None:
    path = f"dev/{name}/{name}"

    version = store.create(path, name.encode())
    store.replace(path, name.encode() * 2, version)

    assert store.read(path).data == name.encode() * 2
    assert store.list_paths("dev") == (path,)
    assert store.list_paths(f"dev/{name}") == (path,)


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "./a", "a\0b", ".protokube-lock"]
)
def test_a_path_that_could_leave_the_store_is_refused_by_every_operation(store: Store, path: str) -> None:
    attempts = (
        lambda: store.read(path),
        lambda: store.create(path, b"x"),
        lambda: store.replace(path, b"x", Version("1")),
        lambda: store.put(path, b"x"),
        lambda: store.list_paths(path or "/"),
    )
    for attempt in attempts:
        with pytest.raises(Refused, match="is not a path inside a store"):
            attempt()

    assert store.list_paths() == ()


def test_stores_at_neighbouring_places_do_not_see_each_other(store: Store, place: object) -> None:
    from protokube.store.open import open_store

    store.create(CONFIG, b"x")
    neighbour = open_store(store.url + "-2")

    assert neighbour.list_paths() == ()
    with pytest.raises(NotThere):
        neighbour.read(CONFIG)
    neighbour.close()


def test_every_writable_store_says_and_proves_that_it_guards(store: Store) -> None:
    assert store.guards

    prove_guard(store)
    prove_guard(store)

    assert store.list_paths() == (PROBE,)


def test_a_closed_store_can_be_used_again(store: Store) -> None:
    store.create(CONFIG, b"x")

    store.close()
    store.close()

    assert store.read(CONFIG).data == b"x"
