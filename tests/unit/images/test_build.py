"""Images built from programs of this machine: their content, and reproducible builds."""

from __future__ import annotations

import hashlib
import io
import json
import os
import resource
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from protokube.images import build
from protokube.images.build import Image

NAME = "registry.k8s.io/thing:v1"


def members(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {each.name: (tar.extractfile(each) or io.BytesIO()).read() for each in tar if each.isfile()}


def opened(data: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Manifest, configuration and layer of an archive with one image."""
    files = members(data)
    (manifest,) = json.loads(files["manifest.json"])
    (layer,) = manifest["Layers"]
    return manifest, json.loads(files[manifest["Config"]]), files[layer]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "thing"
    file.write_text("#!/bin/sh\n")
    file.chmod(0o700)
    return file


def test_an_image_has_its_name_its_layer_and_the_layers_true_digest(script: Path) -> None:
    manifest, config, layer = opened(build.archive(Image(name=NAME, files={"/usr/local/bin/thing": script})))
    assert manifest["RepoTags"] == [NAME]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    assert members(layer)["usr/local/bin/thing"] == b"#!/bin/sh\n"


def test_an_image_may_have_links_folders_of_its_own_other_modes_and_a_user(script: Path) -> None:
    image = Image(
        name=NAME,
        files={"/bin/thing": script},
        links={"/bin/other": "thing"},
        folders={"/scratch": 0o1777, "/bin": 0o711},
        modes={"/bin/thing": 0o4755},
        user="1234",
    )
    _, config, layer = opened(build.archive(image))
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        assert (tar.getmember("bin/other").linkname, tar.getmember("bin/other").issym()) == ("thing", True)
        assert [tar.getmember(name).mode for name in ("scratch", "bin", "bin/thing")] == [0o1777, 0o711, 0o4755]
        assert [each.name for each in tar if each.name in ("bin", "bin/thing")] == ["bin", "bin/thing"]
    assert config["config"]["User"] == "1234"


def test_each_difference_makes_another_archive(script: Path, tmp_path: Path) -> None:
    plain = Image(name=NAME, files={"/bin/thing": script})
    others: list[Any] = [
        {"links": {"/bin/other": "thing"}}, {"folders": {"/x": 0o755}}, {"modes": {"/bin/thing": 0o700}},
        {"user": "1"}, {"command": ("x",)}, {"entry": ("x",)}, {"texts": {"/x": "y"}}, {"bytecode": True},
    ]  # fmt: skip
    kept = [build.keep(replace(plain, **each), tmp_path / "kept") for each in ({}, *others)]
    assert len(set(kept)) == len(kept)


def test_a_program_may_be_run_by_everybody_and_belongs_to_root(script: Path) -> None:
    _, _, layer = opened(build.archive(Image(name=NAME, files={"/usr/local/bin/thing": script})))
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        found = tar.getmember("usr/local/bin/thing")
        folders = {each.name for each in tar if each.isdir()}
    assert (found.mode, found.uid, found.gid) == (0o755, 0, 0)
    assert folders == {"etc", "usr", "usr/local", "usr/local/bin"}


def test_the_same_files_make_the_same_archive_bit_for_bit(script: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copy(script, copy)
    os.utime(copy, (1, 1))
    first = Image(name=NAME, files={"/a": script, "/b": copy})
    second = Image(name=NAME, files={"/b": script, "/a": copy})
    assert build.archive(first) == build.archive(second)


def test_an_image_may_have_an_entry_and_texts_that_are_on_no_machine(tmp_path: Path) -> None:
    image = Image(name=NAME, files={}, texts={"/entry": "#!/bin/sh\n"}, entry=("/entry",))
    _, config, layer = opened(build.archive(image))
    assert config["config"]["Entrypoint"] == ["/entry"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        assert tar.getmember("entry").mode == 0o755
    other = Image(name=NAME, files={}, texts={"/entry": "#!/bin/bash\n"}, entry=("/entry",))
    assert build.keep(image, tmp_path) != build.keep(other, tmp_path)


def test_an_archive_that_cannot_be_written_whole_leaves_nothing(script: Path, tmp_path: Path) -> None:
    image, folder = Image(name=NAME, files={"/thing": script}), tmp_path / "kept"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            build.keep(image, folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert list(folder.iterdir()) == []


def test_an_archive_is_written_once_and_again_only_when_a_file_changed(script: Path, tmp_path: Path) -> None:
    image, folder = Image(name=NAME, files={"/thing": script}), tmp_path / "kept"
    first = build.keep(image, folder)
    stamp = first.stat().st_mtime_ns
    assert (build.keep(image, folder), first.stat().st_mtime_ns) == (first, stamp)
    script.write_text("#!/bin/sh\necho other\n")
    second = build.keep(image, folder)
    assert second != first
    assert b"echo other" in members(opened(second.read_bytes())[2])["thing"]
    assert len(list(folder.iterdir())) == 2
