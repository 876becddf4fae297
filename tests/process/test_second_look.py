"""A test that fails gets one more chance, alone; and nobody overlooks that it needed one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/second_look.py"
FAILS_ONCE = """
from pathlib import Path

def test_it():
    seen = Path(__file__).with_suffix(".seen")
    there = seen.exists()
    seen.touch()
    assert there
"""
READ_ONCE = """
from pathlib import Path

Path(__file__).with_suffix(".seen").mkdir()  # one worker can read this file

def test_it(): pass
"""
LEAN = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
"""Other plugins, which are most of the time a run of nothing takes, play no part in it."""
FAILS, PASSES = "def test_it(): assert 0\n", "def test_it(): pass\n"


def look(folder: Path, *options: str, **files: str) -> tuple[int, str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    command = [sys.executable, str(SCRIPT), "-q", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **LEAN})
    return done.returncode, done.stdout


def test_where_all_pass_there_is_no_second_look(tmp_path: Path) -> None:
    code, said = look(tmp_path, good=PASSES)
    assert code == 0
    assert "second look" not in said


@pytest.mark.parametrize("workers", ["0", "2"])
def test_who_passes_alone_is_named_and_stops_nobody(tmp_path: Path, workers: str) -> None:
    code, said = look(tmp_path, "-n", workers, good=PASSES, once=FAILS_ONCE)
    assert code == 0
    assert said.endswith("  test_once.py::test_it\n")
    assert "UNSTEADY" in said
    assert "1 failed, 1 passed" in said
    assert "1 passed" in said.partition("second look")[2]


def test_who_fails_alone_fails_all(tmp_path: Path) -> None:
    code, said = look(tmp_path, once=FAILS_ONCE, bad=FAILS)
    assert code == 1
    assert "UNSTEADY" not in said
    assert "1 failed, 1 passed" in said.partition("second look")[2]


def test_many_files_that_fail_get_no_second_look(tmp_path: Path) -> None:
    code, said = look(tmp_path, **{f"once_{number}": FAILS_ONCE for number in range(4)})
    assert code == 1
    assert "second look" not in said


@pytest.mark.parametrize(
    ("files", "code"), [({"broken": "import nothing_of_the_kind\n"}, 2), ({}, 5)], ids=["cannot be read", "none"]
)
def test_what_is_not_about_a_failed_test_is_told_as_it_is(tmp_path: Path, files: dict[str, str], code: int) -> None:
    assert look(tmp_path, **files)[0] == code


def test_workers_that_find_different_tests_fail_all_though_what_one_could_not_read_passes_alone(tmp_path: Path) -> None:
    code, said = look(tmp_path, "-n", "2", good=PASSES, torn=READ_ONCE)
    assert code == 1
    assert "second look" not in said


def test_what_failed_in_an_earlier_run_is_not_looked_at(tmp_path: Path) -> None:
    look(tmp_path, bad=FAILS)
    (tmp_path / "test_bad.py").unlink()
    code, said = look(tmp_path, once=FAILS_ONCE)
    assert code == 0
    assert "test_bad" not in said
