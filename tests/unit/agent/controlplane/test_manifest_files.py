"""A manifest keeps its time as long as its pod stays the same: by that time a process counts as old."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from builders.revisions import a_master
from protokube.agent.controlplane.manifest_files import is_same, write
from protokube.manifests.component import pod

POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "etcd", "labels": {"b": "2", "a": "1"}},
    "spec": {"containers": [{"name": "etcd", "command": ["etcd", "--b", "--a"]}]},
}
BEFORE = 1_700_000_000.0


def text(tree: Any, **options: Any) -> str:
    return str(yaml.safe_dump(tree, **{"sort_keys": False, **options}))


def reordered(tree: Any) -> Any:
    """The same with all keys in the other order."""
    if isinstance(tree, dict):
        return {key: reordered(value) for key, value in reversed(tree.items())}
    return [reordered(each) for each in tree] if isinstance(tree, list) else tree


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A manifest of a while ago."""
    file = tmp_path / "etcd.manifest"
    assert write(file, text(POD))
    os.utime(file, (BEFORE, BEFORE))
    return file


def test_the_same_text_is_not_written(place: Path) -> None:
    inode = place.stat().st_ino

    assert not write(place, text(POD))
    assert (place.stat().st_ino, place.stat().st_mtime) == (inode, BEFORE)


@pytest.mark.parametrize(
    "same", [text(reordered(POD)), text(POD, sort_keys=True), text(POD, default_flow_style=True), f"# x\n{text(POD)}"]
)
def test_another_order_of_keys_or_another_style_is_written_with_the_old_time(place: Path, same: str) -> None:
    assert same != text(POD)
    assert not write(place, same)
    assert (place.read_text(), place.stat().st_mtime) == (same, BEFORE)


@pytest.mark.parametrize(
    "changed",
    [
        {**POD, "metadata": {**POD["metadata"], "labels": {"b": "2"}}},
        {**POD, "spec": {"containers": [{"name": "etcd", "command": ["etcd", "--a", "--b"]}]}},
        {**POD, "metadata": {**POD["metadata"], "labels": {"b": 2, "a": "1"}}},
    ],
)
def test_another_pod_gets_a_new_time(place: Path, changed: dict[str, Any]) -> None:
    assert write(place, text(changed))
    assert place.stat().st_mtime > BEFORE
    assert yaml.safe_load(place.read_text()) == changed


@pytest.mark.parametrize("garbage", [b"", b"{", b"\xff\xfe", b"of yesterday", b"- [", b"a: b: c", b"a: 9999-99-99"])
def test_garbage_is_replaced_and_counts_as_another_pod(place: Path, garbage: bytes) -> None:
    place.write_bytes(garbage)
    os.utime(place, (BEFORE, BEFORE))

    assert write(place, text(POD))
    assert (place.read_text(), place.stat().st_mtime > BEFORE) == (text(POD), True)


def test_a_manifest_that_is_missing_is_written(tmp_path: Path) -> None:
    assert write(tmp_path / "new.manifest", text(POD), staging=tmp_path)
    assert stat.S_IMODE((tmp_path / "new.manifest").stat().st_mode) == 0o644


def test_a_link_is_replaced_by_a_file(place: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    place.rename(target)
    place.symlink_to(target)

    write(place, text(POD))

    assert not place.is_symlink()
    assert target.exists()


def test_a_mode_that_was_changed_is_set_again_and_restarts_nothing(place: Path) -> None:
    place.chmod(0o600)
    os.utime(place, (BEFORE, BEFORE))

    assert not write(place, text(POD))
    assert (stat.S_IMODE(place.stat().st_mode), place.stat().st_mtime) == (0o644, BEFORE)


def test_no_draft_is_left_beside_it(place: Path) -> None:
    write(place, text(reordered(POD)))

    assert [each.name for each in place.parent.iterdir()] == [place.name]


def test_every_component_of_ours_is_the_same_pod_in_any_order_of_keys() -> None:
    for each in a_master().components:
        manifest = pod(each)
        assert is_same(manifest, text(reordered(yaml.safe_load(manifest))))


scalars = st.none() | st.booleans() | st.integers() | st.text("abc:- #", max_size=4)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3)
)


@given(trees)
@examples(60)
def test_the_order_of_keys_never_makes_another_pod(tree: Any) -> None:
    assert is_same(text(tree), text(reordered(tree)))


@given(st.text(max_size=30), st.text(max_size=30))
@examples(60)
def test_whatever_stands_there_is_compared_without_an_error(one: str, other: str) -> None:
    assert is_same(one, other) in (True, False)
