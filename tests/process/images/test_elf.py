"""Which programs need no shared library, by their ELF headers."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from protokube.images import build, elf

LOAD = 1


def a_program(place: Path, *kinds: int, entries: int | None = None, offset: int = 64) -> Path:
    """A 64-bit file with program headers of these types, and nothing to run."""
    head = struct.pack("<4sBBBx8xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 2, 62, 1, 0, offset, 0, 0, 64, 56,
                       len(kinds) if entries is None else entries, 64, 0, 0)  # fmt: skip
    place.write_bytes(head + b"".join(struct.pack("<I52x", kind) for kind in kinds))
    return place


def test_a_program_that_only_is_loaded_is_static(tmp_path: Path) -> None:
    assert elf.is_static(a_program(tmp_path / "program", LOAD, LOAD))


@pytest.mark.parametrize("kind", [elf.DYNAMIC, elf.INTERPRETER])
def test_one_that_names_a_loader_or_libraries_is_not(tmp_path: Path, kind: int) -> None:
    assert not elf.is_static(a_program(tmp_path / "program", LOAD, kind))


def test_this_interpreter_and_the_libraries_that_it_loads_are_not() -> None:
    program = Path(sys.executable).resolve()
    files = [program, *build.libraries(program).values()]
    assert len(files) > 1
    assert not any(elf.is_static(file) for file in files)


def test_what_is_no_whole_elf_file_is_left_to_ldd(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "empty").touch()
    whole = a_program(tmp_path / "program", LOAD, LOAD)
    (tmp_path / "cut").write_bytes(whole.read_bytes()[:-1])
    (tmp_path / "narrow").write_bytes(whole.read_bytes().replace(b"\x7fELF\2", b"\x7fELF\1"))
    for name in ("script", "empty", "cut", "narrow", "gone"):
        assert not elf.is_static(tmp_path / name), name
    assert not elf.is_static(a_program(tmp_path / "none", entries=0))
    assert not elf.is_static(a_program(tmp_path / "far", LOAD, offset=2**64 - 1))
    assert not elf.is_static(tmp_path)
