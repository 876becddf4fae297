"""Which paths a store accepts, and what is never printed."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.errors import Refused
from protokube.store.memory import MemoryStore
from protokube.store.paths import (
    LONGEST_PART,
    LONGEST_PATH,
    check_folder,
    check_free,
    check_path,
    folders,
    join,
    scrub,
    why_not,
)

GOOD = ["config", "dev.example.com/config", "a/b/c", "...", "a..b", "..a", " ", "ünï/日本", ".hidden", "a\\b", "~"]
BAD = {
    "": "empty",
    "/": "absolute",
    "/etc/passwd": "absolute",
    "..": 'part ".."',
    "a/..": 'part ".."',
    "a/../b": 'part ".."',
    ".": 'part "."',
    "a/./b": 'part "."',
    "a//b": "empty part",
    "a/": "empty part",
    "a\0b": "control character",
    "a\nb": "control character",
    "a\x7f": "control character",
    "\ud800": "not valid Unicode",
    ".protokube-lock": "the store's own",
    "a/.protokube-draft-1/b": "the store's own",
    "x" * (LONGEST_PART + 1): f"longer than {LONGEST_PART}",
    "ü" * 128: f"longer than {LONGEST_PART}",
    "x/" * 600 + "x": f"longer than {LONGEST_PATH}",
}


@pytest.mark.parametrize("path", GOOD)
def test_an_ordinary_path_is_taken_as_it_is(path: str) -> None:
    assert check_path(path) == path
    assert check_folder(path) == path


@pytest.mark.parametrize(("path", "reason"), BAD.items(), ids=repr)
def test_a_path_with_two_meanings_is_refused_with_the_reason(path: str, reason: str) -> None:
    with pytest.raises(Refused) as caught:
        check_path(path)

    assert reason in caught.value.message
    assert len(caught.value.message) < 200
    assert "dev.example.com/instancegroup/nodes" in caught.value.want


def test_the_root_may_be_listed_but_is_not_a_path() -> None:
    assert check_folder("") == ""
    with pytest.raises(Refused):
        check_path("")


PIECES = st.sampled_from(["..", ".", "", "a", "b", "\0", "/", "//", "../..", "\\", "%2e%2e", "~", ".protokube-x", "ü"])
NASTY = st.one_of(st.text(max_size=30), st.lists(PIECES, max_size=6).map("/".join))


@given(NASTY)
def test_whatever_is_accepted_stays_below_any_root(path: str) -> None:
    if why_not(path):
        return
    for root in ("/srv/state", "/", "relative"):
        place = os.path.normpath(os.path.join(root, path))  # noqa: PTH118
        assert place == os.path.join(root, path)  # noqa: PTH118
        assert PurePosixPath(place).is_relative_to(root)
        assert place != os.path.normpath(root)


@given(NASTY)
def test_whatever_is_accepted_comes_back_under_the_same_name(path: str) -> None:
    store = MemoryStore(f"paths-{os.urandom(8).hex()}", "below")
    if why_not(path):
        with pytest.raises(Refused):
            store.create(path, b"x")
        assert store.list_paths() == ()
    else:
        store.create(path, b"x")
        assert store.list_paths() == (path,)


@given(st.lists(st.text("ab.", min_size=1, max_size=3).filter(lambda part: part.strip(".") != ""), min_size=1))
def test_the_folders_of_a_path_lead_to_it_one_by_one(parts: list[str]) -> None:
    path = "/".join(parts)

    found = folders(path)

    assert len(found) == len(parts) - 1
    assert all(path.startswith(folder + "/") for folder in found)
    assert found == sorted(found, key=len)


@pytest.mark.parametrize(
    ("prefix", "path", "joined"),
    [("", "", ""), ("a", "", "a"), ("", "b", "b"), ("a", "b", "a/b"), ("a/b", "c", "a/b/c")],
)
def test_a_prefix_and_a_path_are_joined_by_one_slash(prefix: str, path: str, joined: str) -> None:
    assert join(prefix, path) == joined


@pytest.mark.parametrize("path", ["a/b", "a/c", "ab", "a/b2", "c/a/b/d"])
def test_a_path_beside_the_others_is_free(path: str) -> None:
    check_free(path, ["a/b", "d"])


@pytest.mark.parametrize(
    ("path", "saw"), [("a", "a is a folder"), ("a/b/c", "a/b is a file"), ("d/e/f", "d is a file")]
)
def test_a_name_cannot_be_a_file_and_a_folder(path: str, saw: str) -> None:
    with pytest.raises(Refused, match="either a file or a folder") as caught:
        check_free(path, ["a/b", "d"])

    assert caught.value.saw == saw


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:secret@host/x", "https://***@host/x"),
        ("https://me@host", "https://***@host"),
        ("https://me:p@ss@host/x", "https://***@host/x"),
        ("cannot reach http://a:b@h1 or http://c:d@h2/", "cannot reach http://***@h1 or http://***@h2/"),
        ("https://host/x@y", "https://host/x@y"),
        ("mail me@host", "mail me@host"),
    ],
)
def test_credentials_in_urls_are_made_unreadable(text: str, shown: str) -> None:
    assert scrub(text) == shown
