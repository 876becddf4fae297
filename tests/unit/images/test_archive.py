"""What an archive of images is judged to hold: names, architecture, and whether all of it is there."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.images.archive import CONTAINERD_NAME, REF_NAME, Verdict, judge
from protokube.images.build import Image, archive
from protokube.images.contents import ImageProblem
from protokube.images.reading import read_archive
from unit.images.archives import ELSEWHERE, LAYER, MACHINE, Layout, contents, digest, packed, saved

WHOLE = "docker.io/library/web:1"


def verdict(folder: Path, files: dict[str, bytes], **more: Any) -> Verdict:
    return judge(contents(folder, files, **more), MACHINE)


def test_names_of_docker_save_are_spelled_out(tmp_path: Path) -> None:
    found = verdict(tmp_path, saved("web:1", "quay.io/me/web:2"))
    assert (dict(found.names), found.problems) == ({WHOLE: WHOLE, "quay.io/me/web:2": "quay.io/me/web:2"}, ())


def test_a_name_of_a_layout_is_told_with_what_containerd_will_call_it(tmp_path: Path) -> None:
    layout = Layout()
    layout.named(layout.image(), **{CONTAINERD_NAME: WHOLE, REF_NAME: "1"})
    layout.named(layout.image(layer=b"other"), **{REF_NAME: "db:2"})
    found = verdict(tmp_path, layout.all())
    assert (dict(found.names), found.problems) == ({"docker.io/library/db:2": "db:2", WHOLE: WHOLE}, ())


@pytest.mark.parametrize("annotations", [{}, {REF_NAME: "latest"}])
def test_an_image_without_a_name_is_refused_with_the_way_to_save_it(
    tmp_path: Path, annotations: dict[str, str]
) -> None:
    layout = Layout()
    for files in (saved(), layout.named(layout.image(), **annotations).all()):
        (problem,) = verdict(tmp_path, files).problems
        assert "has no name" in problem
        assert "`docker save NAME`" in problem


def test_an_image_without_a_name_beside_one_that_has_one_harms_nobody(tmp_path: Path) -> None:
    layout = Layout()
    layout.named(layout.image(layer=b"other")).named(layout.image(), **{CONTAINERD_NAME: WHOLE})
    assert verdict(tmp_path, layout.all()) == Verdict(names={WHOLE: WHOLE}, problems=())


def test_an_image_for_another_architecture_is_refused_and_both_are_named(tmp_path: Path) -> None:
    layout = Layout()
    layout.named(layout.image(ELSEWHERE), **{CONTAINERD_NAME: "web:1"})
    for files in (saved("web:1", machine=ELSEWHERE), layout.all()):
        assert verdict(tmp_path, files).problems == ("web:1 is for linux/arm64, and this machine is linux/amd64",)


def test_of_an_image_for_several_architectures_ours_has_to_be_there_and_no_other(tmp_path: Path) -> None:
    layout = Layout()
    layout.named(layout.platforms(MACHINE, ELSEWHERE, "riscv64"), **{CONTAINERD_NAME: WHOLE})
    files = layout.all()
    other = Layout()
    other.image(ELSEWHERE)
    for path in other.files.keys() - {"oci-layout", f"blobs/sha256/{digest(LAYER)}"}:
        del files[path]
    assert verdict(tmp_path, files) == Verdict(names={WHOLE: WHOLE}, problems=())


def test_an_image_for_several_other_architectures_is_refused_with_their_names(tmp_path: Path) -> None:
    layout = Layout()
    layout.named(layout.platforms(ELSEWHERE, "riscv64"), **{CONTAINERD_NAME: "web:1"})
    (problem,) = verdict(tmp_path, layout.all()).problems
    assert problem == "web:1 is for linux/arm64, linux/riscv64, and this machine is linux/amd64"


def test_a_layer_that_is_missing_or_damaged_is_named(tmp_path: Path) -> None:
    without = {path: data for path, data in saved("web:1").items() if "layer" not in path}
    damaged = {**saved("web:1"), "1/layer.tar": b"something else"}
    assert verdict(tmp_path, without).problems == ("web:1: its layer 1/layer.tar is not in the archive",)
    assert verdict(tmp_path, damaged).problems == ("web:1: its layer 1/layer.tar is damaged",)


def test_a_blob_that_is_missing_or_damaged_is_named(tmp_path: Path) -> None:
    layout, path = Layout(), f"blobs/sha256/{digest(LAYER)}"
    layout.named(layout.image(), **{CONTAINERD_NAME: "web:1"})
    without = {name: data for name, data in layout.all().items() if name != path}
    (problem,) = verdict(tmp_path, without).problems
    assert problem == f"web:1: its layer sha256:{digest(LAYER)} is not in the archive"
    assert verdict(tmp_path, {**layout.all(), path: b"x"}).problems == (f"{path} is damaged",)


def test_a_layer_that_is_a_link_to_another_one_is_followed(tmp_path: Path) -> None:
    files = saved("web:1", Layers=["2/layer.tar"])
    assert verdict(tmp_path, files, links=[("2/layer.tar", "../1/layer.tar")]).problems == ()
    assert verdict(tmp_path, files, links=[("2/layer.tar", "../3/layer.tar")]).problems != ()


def test_a_compressed_layer_is_left_to_containerd(tmp_path: Path) -> None:
    files = {**saved("web:1"), "1/layer.tar": gzip.compress(LAYER)}
    assert verdict(tmp_path, files).problems == ()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"hello": b"world"}, "neither oci-layout nor manifest.json"),
        ({"manifest.json": b"{}"}, "not what `docker save` writes"),
        ({"manifest.json": b"[1]"}, "not what `docker save` writes"),
        ({"manifest.json": b"[[["}, "manifest.json is not JSON"),
        ({"oci-layout": b"{}"}, "index.json is not in the archive"),
        ({"oci-layout": b"{}", "index.json": b"[]"}, "index.json is not the index"),
        ({**saved("UPPER"), "c.json": b"7"}, "names no image"),
        ({**saved("web:1"), "c.json": b"7"}, "c.json is not JSON"),
        ({**saved("web:1"), "c.json": b"{}"}, "unknown/unknown"),
    ],
)
def test_what_is_no_archive_of_images_is_refused_in_words(
    tmp_path: Path, files: dict[str, bytes], message: str
) -> None:
    found = verdict(tmp_path, files)
    assert message in "; ".join(found.problems)


def test_everything_that_is_wrong_with_an_archive_comes_out_at_once(tmp_path: Path) -> None:
    files = {**saved("web:1", "Web", machine=ELSEWHERE), "1/layer.tar": b"x"}
    assert len(verdict(tmp_path, files).problems) == 3


def test_archives_of_our_own_are_good_compressed_or_not(tmp_path: Path) -> None:
    whole = archive(Image(name="web:1", files={}, texts={"/hello": "world"}))
    plain, small = tmp_path / "plain", tmp_path / "small"
    plain.write_bytes(whole)
    small.write_bytes(gzip.compress(whole))
    found = read_archive(plain)
    machine = judge(found, "none").problems[0].partition(" is for linux/")[2].partition(",")[0]
    assert judge(found, machine) == Verdict(names={WHOLE: WHOLE}, problems=())
    assert read_archive(small) == found
    assert (found.sha256, found.size) == (digest(whole), len(whole))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a whole one"),
        (b"hello world\n" * 100, "not a whole one"),
        (b"\x1f\x8bnot gzip at all", "not a whole one"),
        (b"\x28\xb5\x2f\xfd....", "compressed by zstd"),
        (b"\xfd7zXZ....", "compressed by xz"),
    ],
)
def test_a_file_that_is_no_archive_is_refused_in_words(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(ImageProblem, match=message):
        read_archive(tmp_path / "file")


@given(st.data(), st.booleans(), st.booleans())
def test_an_archive_that_was_cut_short_is_never_taken_for_a_whole_one(
    data: st.DataObject, compressed: bool, layout: bool
) -> None:
    made = Layout()
    files = made.named(made.image(), **{CONTAINERD_NAME: WHOLE}).all() if layout else saved("web:1")
    whole = packed(dict(data.draw(st.permutations(list(files.items())))))
    whole = whole.rstrip(b"\0") if not compressed else gzip.compress(whole)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cut.tar"
        file.write_bytes(cut)
        try:
            found = judge(read_archive(file), MACHINE)
        except ImageProblem:
            return
    assert found.problems


@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) |
    st.dictionaries(st.sampled_from(["manifests", "digest", "annotations", "config", "layers", "Config", "Layers",
    "RepoTags", "platform", REF_NAME]), inner, max_size=4), max_leaves=12), st.booleans())  # fmt: skip
def test_no_json_at_all_is_more_than_a_problem(tree: Any, layout: bool) -> None:
    import json

    files = {"index.json" if layout else "manifest.json": json.dumps(tree).encode()}
    with tempfile.TemporaryDirectory() as folder:
        found = verdict(Path(folder), {**files, "oci-layout": b"{}"} if layout else files)
    assert found.problems
