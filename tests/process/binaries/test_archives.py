"""Releases in archives from mirrors, each with a checksum: nothing is kept that is not what it promises."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fakes.mirror import Mirror, dead_url, serving
from fakes.programs import all_of_etcd
from protokube.binaries.etcd import ETCD
from protokube.binaries.mirrors import architecture
from protokube.binaries.obtain import Origin, download_or_build, obtain
from protokube.binaries.product import Release
from protokube.binaries.progress import Silent
from protokube.errors import InvalidRequest, ProtokubeError, Refused, TryLater

VERSION = "3.6.8"
FOLDER = f"etcd-v{VERSION}-linux-{architecture('etcd')}"
ARCHIVE = f"/v{VERSION}/{FOLDER}.tar.gz"
SUMS = f"/v{VERSION}/SHA256SUMS"


def packed(folder: Path, names: tuple[str, ...] = ETCD.programs) -> bytes:
    """An archive as a release has it: a folder with the programs, and a page for readers."""
    (folder / "README.md").write_bytes(os.urandom(9000))
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name in (*names, "README.md"):
            tar.add(folder / name, f"{FOLDER}/{name}")
    return content.getvalue()


def files(archive: bytes, digest: str = "") -> dict[str, bytes]:
    lines = [
        f"{'0' * 64}  etcd-v{VERSION}-darwin-arm64.zip",
        f"{digest or hashlib.sha256(archive).hexdigest()}  {FOLDER}.tar.gz",
    ]
    return {ARCHIVE: archive, SUMS: "\n".join(lines).encode()}


@pytest.fixture
def archive(tmp_path: Path) -> bytes:
    return packed(all_of_etcd(tmp_path / "made", VERSION))


@pytest.fixture
def serve() -> Iterator[Any]:
    with ExitStack() as stack:
        yield lambda mirror: stack.enter_context(serving(mirror)).url


def get(cache: Path, *mirrors: str, version: str = VERSION, **origin: Any) -> Release:
    return obtain(ETCD, version, cache, Origin(mirrors=mirrors, **origin))


def failure(cache: Path, *mirrors: str, version: str = VERSION) -> ProtokubeError:
    with pytest.raises(ProtokubeError) as raised:
        get(cache, *mirrors, version=version)
    assert ETCD.find(None, cache) is None
    return raised.value


def test_a_release_is_unpacked_into_the_cache_without_what_else_is_in_the_archive(
    tmp_path: Path, archive: bytes, serve: Any
) -> None:
    got = get(tmp_path / "cache", f"{serve(Mirror(files(archive)))}/", version="v3.6.8")

    assert (got.version, got.folder) == (VERSION, tmp_path / "cache" / "etcd" / VERSION)
    assert sorted(each.name for each in got.folder.iterdir()) == [".complete", "etcd", "etcdctl", "etcdutl"]
    assert all(ETCD.version(each) == VERSION for each in got.programs.values())


def test_what_is_in_the_cache_is_not_fetched_again(tmp_path: Path, archive: bytes, serve: Any) -> None:
    first = get(tmp_path, serve(Mirror(files(archive))))
    assert get(tmp_path, dead_url()) == first


def test_an_archive_that_stops_in_the_middle_goes_on(tmp_path: Path, archive: bytes, serve: Any) -> None:
    mirror = Mirror(files(archive), at_most=len(archive) // 3 + 1)
    assert get(tmp_path, serve(mirror)).version == VERSION
    assert len(mirror.asked_for(f"{FOLDER}.tar.gz")) == 3


def test_an_archive_with_another_checksum_is_refused_unless_another_mirror_has_the_right_one(
    tmp_path: Path, archive: bytes, serve: Any
) -> None:
    bad = serve(Mirror(files(archive, digest="1" * 64)))
    error = failure(tmp_path, bad)
    assert isinstance(error, Refused)
    assert "is not what its checksum promises" in error.message

    assert get(tmp_path, bad, serve(Mirror(files(archive)))).version == VERSION


def test_a_list_without_this_archive_is_no_checksum(tmp_path: Path, archive: bytes, serve: Any) -> None:
    error = failure(tmp_path, serve(Mirror({**files(archive), SUMS: b"<html>please log in</html>"})))
    assert isinstance(error, TryLater)
    assert f"holds no checksum of {FOLDER}.tar.gz" in error.saw


@pytest.mark.parametrize("content", [b"no archive", b""])
def test_what_is_no_archive_is_refused(content: bytes, tmp_path: Path, serve: Any) -> None:
    error = failure(tmp_path, serve(Mirror(files(content))))
    assert isinstance(error, Refused)
    assert "does not hold etcd, etcdctl, etcdutl" in error.message


def test_an_archive_that_lacks_a_program_is_refused(tmp_path: Path, serve: Any) -> None:
    archive = packed(all_of_etcd(tmp_path / "made", VERSION), ("etcd", "etcdctl"))
    error = failure(tmp_path / "cache", serve(Mirror(files(archive))))
    assert isinstance(error, Refused)
    assert "etcdutl" in error.saw


def test_a_version_that_there_is_not_is_the_users_mistake(tmp_path: Path, archive: bytes, serve: Any) -> None:
    error = failure(tmp_path, serve(Mirror(files(archive))), version="3.6.99")
    assert isinstance(error, InvalidRequest)
    assert error.message == "there is no etcd 3.6.99"


def test_where_nobody_answers_other_ways_are_named(tmp_path: Path) -> None:
    error = failure(tmp_path, dead_url())
    assert isinstance(error, TryLater)
    assert "--build" in error.hint
    assert ETCD.chosen in error.hint


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("3.5.1", "loses data when it is killed"),
        ("3.4.34", "too old to be downloaded or built"),
        ("3.6", "is not a version of etcd"),
    ],
)
def test_versions_that_are_not_to_be_used_or_had_are_told_before_anybody_is_asked(
    version: str, why: str, tmp_path: Path
) -> None:
    error = failure(tmp_path, dead_url(), version=version)
    assert isinstance(error, InvalidRequest)
    assert why in error.message


def test_an_unpacked_archive_is_taken_from_a_folder(tmp_path: Path) -> None:
    folder = all_of_etcd(tmp_path / "usb", VERSION)
    assert obtain(ETCD, None, tmp_path / "cache", Origin(folder=folder)).version == VERSION
    loses = all_of_etcd(tmp_path / "old", "3.5.1")
    with pytest.raises(InvalidRequest, match="loses data"):
        obtain(ETCD, None, tmp_path / "cache", Origin(folder=loses))


def test_where_neither_a_release_nor_modules_are_to_be_had_both_reasons_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "tools" / "go"
    go.parent.mkdir()
    go.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        "*GOVERSION) echo go1.26.8 ;;\n"
        '*-json*GOPROXY*) echo \'{"GOPROXY": "off", "GOSUMDB": "off", "GOMODCACHE": "/m", "GOCACHE": "/c"}\' ;;\n'
        '*) echo \'{"Error": "module lookup disabled by GOPROXY=off"}\' ;;\n'
        "esac\n"
    )
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}:/usr/bin:/bin")

    notes: list[str] = []

    class Listening(Silent):
        def note(self, text: str) -> None:
            notes.append(text)

    with pytest.raises(TryLater, match=r"etcd 3\.6\.8 can be neither downloaded nor built") as raised:
        download_or_build(ETCD, VERSION, tmp_path / "cache", [dead_url()], Listening())

    assert "cannot download etcd 3.6.8" in raised.value.saw
    (note,) = notes
    assert note.startswith("cannot download etcd 3.6.8")
    assert note.endswith("it is built from Go modules")
    assert "module lookup disabled by GOPROXY=off" in raised.value.saw
