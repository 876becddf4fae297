"""The command by which protokube starts itself: from a package, and from a folder of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from protokube.errors import Refused
from protokube.local.base import ourselves

MODULE = """
import sys
print(__name__, sys.argv[1:], sys.path[0])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of our own, with a space in its name, and a module in it."""
    home = tmp_path / "own folder's"
    home.mkdir()
    (home / ourselves.MARK).write_text("kept\n")
    (home / "started.py").write_text(MODULE)
    return home


def test_a_package_is_found_by_the_interpreter() -> None:
    assert ourselves.command() == [sys.executable, "-P", "-m", "protokube"]
    assert ourselves.stays(ourselves.HOME) is None


def test_nothing_is_imported_from_the_current_directory(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise SystemExit('the wrong module')")

    ran = subprocess.run([*ourselves.command(), "--version"], cwd=tmp_path, capture_output=True, text=True)

    assert (ran.returncode, ran.stderr) == (0, "")


def test_from_a_folder_of_our_own_a_module_runs_as_a_program(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "runpy.py").write_text("raise SystemExit('the wrong module')")
    command = [*ourselves.command("started", folder), "agent", "--once"]

    ran = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True)

    assert (ran.stdout, ran.stderr) == (f"__main__ ['agent', '--once'] {folder}\n", "")


def test_a_folder_that_stays_can_bring_up_a_cluster(folder: Path) -> None:
    assert ourselves.stays(folder) is True
    ourselves.prove_kept(folder)


def test_a_folder_that_goes_away_with_its_process_cannot(folder: Path) -> None:
    (folder / ourselves.MARK).write_text("this run\n")

    with pytest.raises(Refused, match="would lose its program") as refused:
        ourselves.prove_kept(folder)

    assert str(folder) in refused.value.saw
    assert "PROTOKUBE_CACHE" in refused.value.hint
