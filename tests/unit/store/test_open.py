"""From a URL to a store, or to an error that says how to spell it."""

from __future__ import annotations

from pathlib import Path

import gcsfs  # noqa: F401 (with s3fs: a library of both binds a socket when it is imported, which no unit test may)
import pytest
import s3fs  # noqa: F401

from protokube.errors import Refused
from protokube.store.file import FileStore
from protokube.store.http import HttpStore
from protokube.store.memory import MemoryStore
from protokube.store.objects import ObjectStore
from protokube.store.open import SCHEMES, open_store


@pytest.mark.parametrize(
    ("url", "kind", "shown"),
    [
        ("/srv/state", FileStore, "file:///srv/state"),
        ("file:///srv/state", FileStore, "file:///srv/state"),
        ("FILE:///srv/state/", FileStore, "file:///srv/state"),
        ("file:///srv/a%20b", FileStore, "file:///srv/a%20b"),
        ("memory://tests", MemoryStore, "memory://tests"),
        ("memory://tests/some/prefix/", MemoryStore, "memory://tests/some/prefix"),
        ("s3://bucket", ObjectStore, "s3://bucket"),
        ("S3://bucket/some/prefix/", ObjectStore, "s3://bucket/some/prefix"),
        ("gs://bucket/prefix", ObjectStore, "gs://bucket/prefix"),
        ("http://host:8080/state/", HttpStore, "http://host:8080/state"),
        ("https://me:secret@host/state", HttpStore, "https://host/state"),
        ("HTTPS://host", HttpStore, "https://host"),
    ],
)
def test_each_scheme_opens_its_store(url: str, kind: type, shown: str) -> None:
    store = open_store(url)

    assert isinstance(store, kind)
    assert store.url == shown


def test_a_bare_path_is_a_folder_of_this_machine() -> None:
    assert open_store("some/state").url == Path("some/state").absolute().as_uri()


def test_only_stores_that_can_be_written_on_condition_say_they_guard() -> None:
    guards = {url: open_store(url).guards for url in ("/x", "memory://x", "s3://x", "gs://x", "http://x")}

    assert guards == {"/x": True, "memory://x": True, "s3://x": True, "gs://x": True, "http://x": False}


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("gcs://bucket", "gs"),
        ("s4://bucket", "s3"),
        ("s3a://bucket", "s3"),
        ("htp://host", "http"),
        ("files:///x", "file"),
        ("memfs://x", "memory"),
        ("httpss://x", "https"),
    ],
)
def test_an_unknown_scheme_is_answered_with_the_one_that_was_meant(url: str, meant: str) -> None:
    with pytest.raises(Refused, match="there is no store of the kind") as caught:
        open_store(url)

    assert caught.value.hint == f"did you mean {meant}://?"
    assert all(f"{scheme}://" in caught.value.want for scheme in SCHEMES)


def test_a_scheme_like_nothing_we_have_gets_the_list_alone() -> None:
    with pytest.raises(Refused) as caught:
        open_store("swift-kick://x")

    assert caught.value.hint == ""
    assert "s3://" in caught.value.want


@pytest.mark.parametrize(
    ("url", "saw"),
    [
        ("", "names no folder"),
        ("file://", "names no folder"),
        ("file://host/state", "three slashes"),
        ("file:/state", 'there is no "//"'),
        ("s3:/bucket", 'there is no "//"'),
        ("s3:bucket/prefix", 'there is no "//"'),
        ("s3://", "is not a name"),
        ("s3:///prefix", "is not a name"),
        ("gs://bad bucket/x", "is not a name"),
        ("memory://", "is not a name"),
        ("s3://bucket/prefix?region=eu", 'goes on after "?"'),
        ("gs://bucket#x", 'goes on after "#"'),
        ("http://", "names no host"),
        ("https:///state", "names no host"),
        ("http://host:port/state", "ort"),
        ("https://host/state?token=abc", 'goes on after "?"'),
    ],
)
def test_a_url_that_cannot_work_is_refused_with_what_is_wrong(url: str, saw: str) -> None:
    with pytest.raises(Refused, match="cannot open") as caught:
        open_store(url)

    assert saw in caught.value.saw
    assert caught.value.want


@pytest.mark.parametrize("url", ["s3://bucket/../other", "gs://bucket//x", "memory://x/.protokube-y"])
def test_a_prefix_follows_the_rules_of_paths(url: str) -> None:
    with pytest.raises(Refused, match="is not a path inside a store"):
        open_store(url)


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKIA:hunter2@bucket",
        "gs://me:hunter2@bucket/x",
        "ftp://me:hunter2@host",
        "https://host/x?password=hunter2",
        "https://me:hunter2@host/x?y",
        "https://me:hunter2@host:port/",
        "s3://bucket/x?secret=hunter2",
    ],
)
def test_a_refused_url_never_shows_its_password(url: str) -> None:
    with pytest.raises(Refused) as caught:
        open_store(url)

    assert "hunter2" not in str(caught.value)
