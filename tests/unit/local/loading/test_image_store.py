"""The folder of loaded images: the last one of a name stays, twice is once, and nothing is ever half there."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.errors import Refused, TryLater
from protokube.images.contents import ImageProblem
from protokube.local.loading.image_store import INDEX, LOCK, Kept, keep, locked, need_room, owners, plan, read_index
from unit.images.archives import digest

NAMES = st.frozensets(st.sampled_from("abcd"), min_size=1, max_size=3)


def kept(content: str, *names: str) -> Kept:
    return Kept(digest(content.encode()), {name: name for name in names})


def loaded(folder: Path, content: str, *names: str) -> Path:
    """Keep it in a folder below."""
    file, images = folder / content, folder / "images"
    file.write_text(content)
    with locked(images, 1):
        keep(images, [(file, kept(content, *names))])
    return images


def there(images: Path) -> list[str]:
    return sorted(each.read_text() for each in images.glob("*.tar"))


def test_a_name_that_is_loaded_with_other_content_replaces_the_older_archive(tmp_path: Path) -> None:
    loaded(tmp_path, "one", "web:1")
    images = loaded(tmp_path, "two", "web:1")
    assert (there(images), read_index(images)) == (["two"], (kept("two", "web:1"),))


def test_an_archive_stays_while_one_of_its_names_is_its_own_and_comes_before_what_took_the_other(
    tmp_path: Path,
) -> None:
    loaded(tmp_path, "both", "web:1", "db:1")
    images = loaded(tmp_path, "web", "web:1")
    assert read_index(images) == (kept("both", "web:1", "db:1"), kept("web", "web:1"))
    loaded(tmp_path, "db", "db:1")
    assert (there(images), read_index(images)) == (["db", "web"], (kept("web", "web:1"), kept("db", "db:1")))


def test_the_same_thing_twice_changes_nothing(tmp_path: Path) -> None:
    images = loaded(tmp_path, "one", "web:1")
    before = {each: (each.stat().st_ino, each.stat().st_mtime_ns) for each in images.iterdir()}
    loaded(tmp_path, "one", "web:1")
    assert {each: (each.stat().st_ino, each.stat().st_mtime_ns) for each in images.iterdir()} == before


def test_only_the_owner_may_read_them(tmp_path: Path) -> None:
    images = loaded(tmp_path, "one", "web:1")
    assert {each.stat().st_mode & 0o777 for each in images.iterdir()} == {0o600}
    assert images.stat().st_mode & 0o777 == 0o700


def test_what_a_load_that_was_killed_left_is_removed_by_the_next(tmp_path: Path) -> None:
    (tmp_path / "images/.export-1").mkdir(parents=True)
    (tmp_path / "images/.export-1/half").write_text("half")
    (tmp_path / "images/.abc.tar.0011").write_text("half")
    images = loaded(tmp_path, "one", "web:1")
    assert {each.name for each in images.iterdir()} == {INDEX, LOCK, f"{digest(b'one')}.tar"}


def test_an_archive_is_kept_without_the_compression_around_it(tmp_path: Path) -> None:
    file, images = tmp_path / "small", tmp_path / "images"
    file.write_bytes(gzip.compress(b"one"))
    with locked(images, 1):
        keep(images, [(file, kept("one", "web:1"))])
    assert there(images) == ["one"]


def test_a_file_that_changed_since_it_was_judged_is_not_kept_and_what_was_there_stays(tmp_path: Path) -> None:
    images = loaded(tmp_path, "one", "web:1")
    (tmp_path / "file").write_text("changed")
    with pytest.raises(ImageProblem, match="changed while it was read"), locked(images, 1):
        keep(images, [(tmp_path / "file", kept("two", "web:1"))])
    assert (there(images), read_index(images)) == (["one"], (kept("one", "web:1"),))


def test_of_two_loads_the_second_waits_for_the_first_and_says_so_in_the_end(tmp_path: Path) -> None:
    message = "another `protokube load image` is at work"
    with locked(tmp_path, 1), pytest.raises(TryLater, match=message), locked(tmp_path, 0.2):
        pass
    with locked(tmp_path, 0):
        pass


def test_what_would_fill_the_disk_is_refused_with_the_numbers(tmp_path: Path) -> None:
    need_room(tmp_path, 1)
    with pytest.raises(Refused, match="no room for these images") as refused:
        need_room(tmp_path, 2**60)
    assert "MiB free" in refused.value.saw


def test_an_index_of_somebody_else_is_no_index(tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text("[]")
    with pytest.raises(ImageProblem, match="not an index of images"):
        read_index(tmp_path)


@given(st.lists(st.tuples(st.sampled_from("123456"), NAMES), max_size=8))
def test_whatever_is_loaded_in_whatever_order_each_name_is_of_the_last_that_brought_it(
    loads: Sequence[tuple[str, frozenset[str]]],
) -> None:
    contents = dict(loads)  # one content has one set of names
    now: tuple[Kept, ...] = ()
    last: dict[str, str] = {}
    for content, _ in loads:
        new = kept(content, *sorted(contents[content]))
        now = plan(now, [new])
        last |= dict.fromkeys(new.names, new.sha256)
        assert owners(now) == last
        assert {each.sha256 for each in now} == set(last.values())
        assert plan(now, [new]) == now
