"""Programs by image: each version under its own name, and never one in the place of another."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from protokube.local.base import programs

IMAGE = "registry.k8s.io/etcd"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "programs"


def a_program(tmp_path: Path, text: str, name: str = "etcd") -> Path:
    place = tmp_path / text / name
    place.parent.mkdir(exist_ok=True)
    place.write_text(text)
    place.chmod(0o755)
    return place


def test_each_tag_of_an_image_has_its_own_program(folder: Path, tmp_path: Path) -> None:
    programs.add(folder, f"{IMAGE}:3.4.23-0", a_program(tmp_path, "old"))
    programs.add(folder, f"{IMAGE}:3.5.35-0", a_program(tmp_path, "new"))

    for tag, text in (("3.4.23-0", "old"), ("3.5.35-0", "new")):
        found = programs.find_only(folder, f"{IMAGE}:{tag}", "etcd")
        assert found is not None
        assert found.read_text() == text
        assert os.access(found, os.X_OK)


def test_another_tag_is_never_run_in_the_place_of_a_missing_one(folder: Path, tmp_path: Path) -> None:
    programs.add(folder, f"{IMAGE}:3.4.23-0", a_program(tmp_path, "old"))

    with pytest.raises(FileNotFoundError, match=r"no image registry.k8s.io/etcd:3.5.35-0 on this host"):
        programs.find_only(folder, f"{IMAGE}:3.5.35-0", "etcd")
    assert programs.find(folder, f"{IMAGE}:3.5.35-0", "etcd") is None


@pytest.mark.parametrize("image", ["registry.example/mine:1", "localhost:5000/etcd", "etcd"])
def test_what_the_folder_knows_nothing_of_is_looked_for_elsewhere(folder: Path, tmp_path: Path, image: str) -> None:
    programs.add(folder, f"{IMAGE}:3.4.23-0", a_program(tmp_path, "old"))

    assert programs.find_only(folder, image, "etcd") is None


def test_the_port_of_a_registry_is_no_tag(folder: Path, tmp_path: Path) -> None:
    programs.add(folder, "localhost:5000/etcd", a_program(tmp_path, "untagged"))
    programs.add(folder, "localhost:5000/etcd:3", a_program(tmp_path, "tagged"))

    found = programs.find(folder, "localhost:5000/etcd", "etcd")
    assert found is not None
    assert found.read_text() == "untagged"


def test_no_name_of_an_image_leads_out_of_the_folder(folder: Path, tmp_path: Path) -> None:
    for image in ("../../etc:1", "a/../../b:..", "..:.."):
        assert folder in programs.add(folder, image, a_program(tmp_path, "x")).resolve().parents


def test_the_same_program_again_is_left_alone_and_another_one_replaces_it(folder: Path, tmp_path: Path) -> None:
    first = programs.add(folder, f"{IMAGE}:1", a_program(tmp_path, "first"))
    before = first.stat().st_ino

    assert programs.add(folder, f"{IMAGE}:1", a_program(tmp_path, "first")).stat().st_ino == before
    assert programs.add(folder, f"{IMAGE}:1", a_program(tmp_path, "second")).read_text() == "second"
    assert [each.name for each in first.parent.iterdir()] == ["etcd"], "no draft is left"
