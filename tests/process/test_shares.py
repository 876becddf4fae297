"""Tests divided among processes: each runs once, and what one process finds is the answer of all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.shares import shares

SCRIPT = Path(__file__).parents[2] / "scripts/shares.py"
FAILS, PASSES = "def test_it(): assert 0\n", "def test_it(): pass\n"


def run(folder: Path, **files: str) -> tuple[int, str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "some").mkdir()
    for name, text in files.items():
        (folder / "some" / f"test_{name}.py").write_text(text)
    command = [sys.executable, str(SCRIPT), "some", "--", "-p", "no:cacheprovider"]
    lean = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=lean)
    return done.returncode, done.stdout


def test_what_all_processes_ran_is_told_in_one_line(tmp_path: Path) -> None:
    code, text = run(tmp_path, a=PASSES, b=PASSES * 3, c="def test_one(): pass\ndef test_other(): pass\n")
    assert code == 0
    assert text.startswith("4 passed in ")
    assert len(text.splitlines()) == 1


def test_a_failure_in_any_process_is_shown_and_fails_the_run(tmp_path: Path) -> None:
    code, text = run(tmp_path, a=PASSES, b=FAILS, c=PASSES)
    assert code == 1
    assert "FAILED some/test_b.py::test_it" in text
    assert "1 failed" in text.splitlines()[-1]
    assert "2 passed" in text.splitlines()[-1]


@pytest.mark.parametrize("broken", ["import nothing_of_this_name\n", "def test_it(:\n"])
def test_a_file_that_cannot_be_read_fails_the_run(tmp_path: Path, broken: str) -> None:
    code, text = run(tmp_path, a=PASSES, b=broken)
    assert code == 2
    assert "ERROR some/test_b.py" in text


def test_a_process_that_a_signal_ends_fails_the_run(tmp_path: Path) -> None:
    code, text = run(tmp_path, a=PASSES, b="import os\n\ndef test_it(): os.kill(os.getpid(), 11)\n")
    assert code == 11
    assert "test_b.py" in text


def test_no_tests_are_no_success(tmp_path: Path) -> None:
    assert run(tmp_path) == (5, "nothing ran in 0.0 s, 0 processes\n")


@given(st.lists(st.integers(0, 5000), max_size=30), st.integers(1, 8))
def test_every_file_is_in_one_share_and_no_share_is_larger_by_more_than_one_file(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], number: int
) -> None:
    folder = tmp_path_factory.mktemp("files")
    for name, size in enumerate(sizes):
        (folder / f"test_{name}.py").write_bytes(b"#" * size)
    found = shares(folder.iterdir(), number)
    assert sorted(file for share in found for file in share) == sorted(folder.iterdir())
    totals = [sum(file.stat().st_size for file in share) for share in found]
    assert max(totals, default=0) - min(totals, default=0) <= max(sizes, default=0)
