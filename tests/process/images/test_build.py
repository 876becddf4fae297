"""Images built from programs of this machine: their content, and reproducible builds."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from protokube.errors import Refused
from protokube.images import build

NAME = "registry.k8s.io/thing:v1"


def test_a_dynamic_program_brings_its_libraries_and_its_loader() -> None:
    files = build.of_program(NAME, Path(sys.executable).resolve()).files
    assert any("ld-linux" in path for path in files)
    assert any("libc.so" in path for path in files)
    assert all(place.is_file() for place in files.values())


def test_libraries_of_unpacked_packages_are_where_the_loader_of_the_image_looks(tmp_path: Path) -> None:
    program = Path(sys.executable).resolve()
    inside, there = next((path, file) for path, file in build.libraries(program).items() if "libm.so" in path)
    folder = tmp_path / "usr" / "lib" / "some-linux-gnu"
    folder.mkdir(parents=True)
    shutil.copy(there, folder / there.name)
    found = build.libraries(program, roots=[tmp_path])
    assert found[f"/usr/lib/some-linux-gnu/{there.name}"] == folder / there.name
    assert inside not in found


def test_what_does_not_run_alone_cannot_be_the_pause_image() -> None:
    with pytest.raises(Refused, match="pause image"):
        build.of_pause(NAME, Path(sys.executable).resolve())
