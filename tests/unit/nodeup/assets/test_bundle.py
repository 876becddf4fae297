"""Bundles: reproducible, and refused when they were cut short or altered on their way."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.assets import a_file, an_asset, sha256
from protokube.errors import Refused
from protokube.nodeup.assets import bundle as bundles
from protokube.nodeup.assets.bundle import Bundle, first, open_bundle, verify, write_bundle
from protokube.nodeup.assets.fetch import fetch
from protokube.nodeup.values import Asset, Directory, Task

FILES = {"kubelet": b"kubelet" * 3_000, "runc": b"runc" * 100, "empty": b""}


def quiet(_: str) -> None:
    """Nobody listens."""


def a_bundle(folder: Path, files: dict[str, bytes] | None = None, name: str = "rack.bundle") -> Bundle:
    found = [(a_file(folder / f"of-{key}", data, key), folder / f"of-{key}") for key, data in (files or FILES).items()]
    return write_bundle(folder / name, found, "rack Master", quiet)


def refused(path: Path) -> str:
    with pytest.raises(Refused) as raised:
        verify(open_bundle(path), quiet)
    assert raised.value.message == f"{path} is not a whole bundle"
    assert raised.value.hint == "copy it again, or make it anew: `protokube bundle`"
    return raised.value.saw


def rewritten(path: Path, change: Any) -> None:
    """The bundle with other members or another index."""
    with tarfile.open(path) as tar:
        members = [(each, (tar.extractfile(each) or io.BytesIO()).read()) for each in tar.getmembers()]
    changed = change(members)
    with tarfile.open(path, "w") as tar:
        for entry, data in changed:
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def test_the_same_files_give_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    one = a_bundle(tmp_path / "a")
    other = a_bundle(tmp_path / "b", dict(reversed(FILES.items())))

    assert one.path.read_bytes() == other.path.read_bytes()
    assert [each.name for each in one.entries] == ["empty", "kubelet", "runc"]
    assert one.about == "rack Master"
    verify(one, quiet)


def test_an_asset_is_copied_out_of_a_bundle_and_no_other_source_is_asked(tmp_path: Path) -> None:
    bundle = a_bundle(tmp_path)
    tasks: tuple[Task, ...] = (
        an_asset(FILES["kubelet"], "https://mirror.invalid/kubelet"),
        an_asset(b"other", "https://mirror.invalid/other", name="other"),
        Directory(path="/opt"),
    )

    changed = first(tasks, bundle)

    asset = changed[0]
    assert isinstance(asset, Asset)
    assert asset.urls == (f"file://{bundle.path}#assets/{asset.sha256}", "https://mirror.invalid/kubelet")
    assert changed[1:] == tasks[1:]
    assert fetch(asset, tmp_path / "cache", quiet).read_bytes() == FILES["kubelet"]


def test_two_names_of_one_content_are_in_it_once(tmp_path: Path) -> None:
    bundle = a_bundle(tmp_path, {"a": b"same" * 9, "b": b"same" * 9})

    with tarfile.open(bundle.path) as tar:
        assert tar.getnames() == ["index.json", f"assets/{sha256(b'same' * 9)}"]
    assert [each.name for each in bundle.entries] == ["a", "b"]


def test_a_copy_that_was_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    bundle = a_bundle(tmp_path)
    (asset,) = first((an_asset(FILES["kubelet"], size=len(FILES["kubelet"])),), bundle)
    assert isinstance(asset, Asset)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / f"sha256-{asset.sha256}.part").write_bytes(FILES["kubelet"][:5_000])

    assert fetch(asset, tmp_path / "cache", quiet).read_bytes() == FILES["kubelet"]


@given(share=st.floats(0.0, 0.9999))
def test_a_bundle_that_was_cut_short_anywhere_is_refused(
    tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    path = a_bundle(tmp_path_factory.mktemp("bundle")).path
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])

    assert refused(path)


def test_a_truncated_bundle_says_how_much_of_it_is_there(tmp_path: Path) -> None:
    path = a_bundle(tmp_path).path
    data = path.read_bytes()
    path.write_bytes(data[:-1])

    assert refused(path) == f"it has {len(data) - 1} of {len(data)} bytes"


@given(at=st.integers(0, 10**6), value=st.integers(1, 255))
def test_a_byte_that_was_altered_anywhere_gives_no_other_asset(
    tmp_path_factory: pytest.TempPathFactory, at: int, value: int
) -> None:
    """Padding and the names of users in headers may differ; what is taken out never does."""
    folder = tmp_path_factory.mktemp("bundle")
    path = a_bundle(folder).path
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= value
    path.write_bytes(bytes(data))
    try:
        bundle = open_bundle(path)
        verify(bundle, quiet)
    except Refused:
        return

    found = {each.sha256 for each in bundle.entries}
    assert found == {sha256(each) for each in FILES.values()}


def test_altered_content_is_refused_with_both_digests_when_it_is_copied(tmp_path: Path) -> None:
    bundle = a_bundle(tmp_path)
    entry = next(each for each in bundle.entries if each.name == "kubelet")
    data = bytearray(bundle.path.read_bytes())
    data[entry.offset + 5] ^= 1
    bundle.path.write_bytes(bytes(data))
    altered = sha256(bytes(data[entry.offset : entry.offset + entry.size]))
    (asset,) = first((an_asset(FILES["kubelet"], "https://mirror.invalid/kubelet"),), bundle)
    assert isinstance(asset, Asset)

    with pytest.raises(Refused) as raised:
        fetch(asset, tmp_path / "cache", quiet)

    assert raised.value.message == f"{bundle.path} was altered: kubelet in it is not what its index promises"
    assert raised.value.saw == f"its sha256 is {altered}"
    assert raised.value.want == f"sha256 {asset.sha256}"
    assert refused(bundle.path) == f"the sha256 of kubelet is {altered}, and not {asset.sha256}"


def index_of(members: Any) -> Any:
    return json.loads(members[0][1])


def with_index(members: Any, tree: Any) -> Any:
    return [(members[0][0], json.dumps(tree).encode()), *members[1:]]


def without_size(tree: Any) -> Any:
    del tree["assets"][0]["size"]
    return tree


@pytest.mark.parametrize(
    ("change", "saw"),
    [
        (lambda members: members[:-1], "of its index is not in it"),
        (lambda members: members[1:], "its first member is assets/"),
        (lambda members: [*members, (tarfile.TarInfo("extra"), b"x")], "extra in it is not in its index"),
        (lambda members: [*members, members[-1]], "it has a member twice, or one that is not a file"),
        (lambda members: [(members[0][0], b"{"), *members[1:]], "index.json in it is not JSON"),
        (lambda members: with_index(members, [1]), "index.json in it is not an index of a bundle"),
        (lambda members: with_index(members, without_size(index_of(members))), "an entry without name, sha256 or size"),
        (
            lambda members: with_index(members, {**index_of(members), "assets": []}),
            "in it is not in its index",
        ),
        (lambda members: [*members[:-1], (members[-1][0], members[-1][1] + b"x")], "bytes, and"),
    ],
)
def test_an_index_that_does_not_fit_the_members_is_refused(tmp_path: Path, change: Any, saw: str) -> None:
    path = a_bundle(tmp_path).path
    rewritten(path, change)

    assert saw in refused(path)


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page").write_text("<html>" * 1000)

    assert refused(tmp_path / "page")
    with pytest.raises(Refused, match="there is no bundle"):
        open_bundle(tmp_path / "missing")


def test_a_bundle_of_a_newer_format_is_told_apart_from_a_damaged_one(tmp_path: Path) -> None:
    path = a_bundle(tmp_path).path
    rewritten(path, lambda members: with_index(members, {**index_of(members), "version": 2}))

    with pytest.raises(Refused) as raised:
        open_bundle(path)
    assert raised.value.message == f"{path} is a bundle of version 2"


def test_a_file_that_changes_while_it_is_bundled_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    asset = a_file(tmp_path / "kubelet")
    (tmp_path / "kubelet").write_bytes(b"other")

    (tmp_path / "out").mkdir()

    with pytest.raises(Refused, match="kubelet changed meanwhile"):
        write_bundle(tmp_path / "out" / "b", [(asset, tmp_path / "kubelet")], "x", quiet)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_bundle_has_nothing_of_this_machine_in_it(tmp_path: Path) -> None:
    with tarfile.open(a_bundle(tmp_path).path) as tar:
        entries = tar.getmembers()

    assert {(each.mtime, each.uid, each.gid, each.uname, each.gname, each.mode) for each in entries} == {
        (0, 0, 0, "", "", 0o644)
    }
    assert entries[0].name == bundles.INDEX
