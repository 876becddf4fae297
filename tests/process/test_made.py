"""`make down` removes what `make up` made in this working copy, and no other cluster."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from builders.command import EXAMPLES, ROOT, environment
from protokube.local.base.paths import Paths


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A working copy with the script alone, and clusters elsewhere."""
    (tmp_path / "copy" / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "made.py", tmp_path / "copy" / "scripts")
    return tmp_path / "copy"


def run(copy: Path, *words: str, state: str = "state") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "scripts/made.py", *words]
    env = environment(PROTOKUBE_STATE=str(copy.parent / state), PYTHONPATH=str(ROOT / "src"))
    return subprocess.run(command, cwd=copy, capture_output=True, text=True, env=env, timeout=60, check=False)


def made(copy: Path, *words: str, state: str = "state") -> str:
    done = run(copy, *words, state=state)
    assert done.returncode == 0, done.stderr
    return done.stdout


def create(copy: Path, name: str, state: str = "state") -> None:
    """As far as `up` gets at first."""
    Paths.at(copy.parent / state / name).create()


def test_only_what_was_noted_is_removed_each_by_its_name(copy: Path) -> None:
    create(copy, "mine")
    for options in ((), ("--cluster", "second", "--masters", "1"), (str(EXAMPLES / "local.yaml"),)):
        made(copy, "note", *options)
    for name in ("laptop", "second", "workbench"):
        create(copy, name)

    said = made(copy, "down", "echo", "protokube")

    assert said.splitlines() == [f"protokube down --cluster {name}" for name in ("laptop", "second", "workbench")]
    assert made(copy, "down", "echo", "protokube") == (
        "`make up` made no cluster that is still there; there are others: laptop, mine, second, workbench "
        "(protokube down --cluster NAME)\n"
    ), "`echo` removed nothing, and they are no longer noted"


def test_a_cluster_that_was_there_before_is_not_taken_for_ours(copy: Path) -> None:
    create(copy, "laptop")
    made(copy, "note")

    assert "made no cluster" in made(copy, "down", "echo")


def test_one_of_the_same_name_in_another_folder_is_not_taken_for_ours(copy: Path) -> None:
    """As of a test that has a state folder of its own, and was interrupted."""
    made(copy, "note", state="of a test")
    create(copy, "laptop", state="of a test")
    create(copy, "laptop")

    assert "made no cluster" in made(copy, "down", "echo")
    assert made(copy, "down", "echo", state="of a test") == "down --cluster laptop\n", "still noted"


def test_one_of_the_same_name_that_something_else_made_since_stays(copy: Path) -> None:
    made(copy, "note")
    create(copy, "laptop")
    made(copy, "keep")
    known = "\t" in (copy / ".cache" / "made").read_text()  # not every file system knows births
    shutil.rmtree(copy.parent / "state" / "laptop")
    create(copy, "laptop")

    made(copy, "note")  # this `make up` completes a cluster that is not its own
    made(copy, "keep")

    others = "`make up` made no cluster that is still there; there are others: laptop (protokube down --cluster NAME)\n"
    assert made(copy, "down", "echo") == (others if known else "down --cluster laptop\n")


def test_one_that_make_up_made_anew_is_removed(copy: Path) -> None:
    for _ in range(2):
        made(copy, "note")
        shutil.rmtree(copy.parent / "state", ignore_errors=True)  # as `up` does where a first one was interrupted
        create(copy, "laptop")
        made(copy, "keep")

    assert made(copy, "down", "echo") == "down --cluster laptop\n"


def test_one_whose_up_was_killed_is_removed(copy: Path) -> None:
    made(copy, "note")
    create(copy, "laptop")

    assert made(copy, "down", "echo") == "down --cluster laptop\n"


def test_one_that_could_not_be_removed_stays_noted(copy: Path) -> None:
    made(copy, "note")
    create(copy, "laptop")

    assert run(copy, "down", "false").returncode == 1
    assert made(copy, "down", "echo") == "down --cluster laptop\n"


@pytest.mark.parametrize("options", [("--help",), ("--masters", "many"), ("nothing.yaml",), ("--no-such-option",)])
def test_options_that_up_itself_answers_are_no_error_here(copy: Path, options: tuple[str, ...]) -> None:
    made(copy, "note", *options)


def test_a_note_that_cannot_be_written_stops_no_up_and_is_told(copy: Path) -> None:
    (copy / ".cache").write_text("a file where the folder should be")

    done = run(copy, "note")

    assert done.returncode == 0
    assert done.stderr.startswith("warning: `make down` will not remove the cluster, since it cannot be noted: ")
    assert done.stderr.count("\n") == 1


def test_notes_that_cannot_be_read_are_told_in_words(copy: Path) -> None:
    (copy / ".cache" / "made").mkdir(parents=True)

    done = run(copy, "down", "echo")

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: what `make up` made cannot be read or written\n  saw:  ")
    assert "Traceback" not in done.stderr
