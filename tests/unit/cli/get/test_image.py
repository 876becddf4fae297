"""`protokube get image`: the command as a user calls it; what it makes is run in the end-to-end tests."""

from __future__ import annotations

from pathlib import Path

from builders.command import Call
from protokube.errors import ExitCode


def test_a_file_that_is_there_is_left_alone(call: Call, here: Path) -> None:
    (here / "ours.tar").write_text("somebody's")
    answer = call("get", "image", "ours.tar")

    assert (answer.code, answer.out) == (ExitCode.REFUSED, "")
    assert answer.err == "error: ours.tar is there already\n  hint: another name, or remove it first\n"
    assert (here / "ours.tar").read_text() == "somebody's"


def test_a_folder_that_is_not_there_is_named(call: Call, here: Path) -> None:
    answer = call("get", "image", "no/ours.tar")

    assert (answer.code, answer.out) == (ExitCode.REFUSED, "")
    assert answer.err == "error: there is no folder no\n"
    assert list(here.iterdir()) == []


def test_help_shows_how_it_is_called_and_the_help_of_get_leads_there(call: Call) -> None:
    assert call("get", "image", "-h").out.startswith("Usage: protokube get image [OPTIONS] FILE\n")
    assert "`protokube get image --help`" in call("get", "--help").out
