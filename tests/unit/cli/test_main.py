"""The command itself: help, mistyped names, exit codes, errors for people and as data."""

from __future__ import annotations

import errno
import json
import os
import re
from contextlib import redirect_stdout

import click
import pytest

from builders.command import MINIMAL, Call
from protokube import __version__
from protokube.cli.main import COMMANDS, Commands, cli
from protokube.cli.shared.failure import describe, wants_json
from protokube.errors import ExitCode


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_lists_every_command_with_a_sentence(call: Call, option: str) -> None:
    answer = call(option)

    assert (answer.code, answer.err) == (ExitCode.OK, "")
    for name, (_, sentence) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(sentence)}$", answer.out, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_and_shows_how_it_is_called(call: Call, name: str) -> None:
    answer = call(name, "--help")

    assert (answer.code, answer.err) == (ExitCode.OK, "")
    assert answer.out.startswith(f"Usage: protokube {name} ")
    assert COMMANDS[name][1] in answer.out
    assert f"    protokube {name}" in answer.out or f"(protokube {name} " in answer.out


def test_the_list_of_commands_says_the_same_as_the_commands_themselves() -> None:
    for name, (_, sentence) in COMMANDS.items():
        command = cli.commands.get(name) or cli.get_command(cli.make_context("protokube", [name]), name)
        assert command
        assert (command.help or "").splitlines()[0] == sentence


def test_the_version_is_told(call: Call) -> None:
    assert call("--version").out == f"protokube, version {__version__}\n"


@pytest.mark.parametrize("place", [None, "/var/cache/protokube/images/a.tar"])
def test_a_full_disk_that_has_not_our_result_is_told_as_such_and_is_no_bug(place: str | None) -> None:
    @click.command()
    def writing() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), place)

    class Writing(Commands):
        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
            return writing

    reader, writer = os.pipe()
    with (
        os.fdopen(reader),
        os.fdopen(writer, "w") as pipe,
        redirect_stdout(pipe),
        pytest.raises(OSError, match="No space") as caught,
    ):
        Writing().main(args=["up"], standalone_mode=False)
    fields, code, text = describe(caught.value)

    assert (fields["code"], code) == ("refused", ExitCode.REFUSED)
    assert text == f"error: cannot write{f' {place}' if place else ''}: No space left on device\n" + (
        "  hint: make room on that disk"
    )


def test_no_command_at_all_shows_the_help_and_is_a_mistake(call: Call) -> None:
    answer = call()

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert answer.err.startswith("Usage: protokube ")


@pytest.mark.parametrize(("typed", "meant"), [("complet", "complete"), ("Diff", "diff"), ("schemas", "schema")])
def test_a_mistyped_command_is_told_with_the_one_probably_meant(call: Call, typed: str, meant: str) -> None:
    answer = call(typed, "spec.yaml")

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert answer.err.splitlines() == [
        f"error: there is no command {typed!r}. did you mean `{meant}`?",
        "  hint: protokube --help",
    ]


def test_a_command_like_none_of_ours_is_told_without_a_guess(call: Call) -> None:
    assert call("frobnicate").err.splitlines()[0] == "error: there is no command 'frobnicate'."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("complete",), "Missing argument 'SPEC...'."),
        (("complete", MINIMAL, "--wy", "x"), "No such option"),
        (("complete", MINIMAL, "-o", "xml"), "'xml' is not one of"),
        (("complete", MINIMAL, "--why"), "Option '--why' requires an argument."),
        (("diff", MINIMAL), "Missing argument 'B'."),
        (("diff", MINIMAL, MINIMAL, "--width", "wide"), "'wide' is not a valid integer."),
        (("get",), "Missing option '--store'"),
        (("schema", "--kind", "Pod"), "'Pod' is not one of"),
        (("completion", "tcsh"), "'tcsh' is not one of"),
    ],
    ids=lambda each: " ".join(each[:1] + each[2:]) if isinstance(each, tuple) else "",
)
def test_a_call_that_cannot_be_understood_points_to_the_help(
    call: Call, arguments: tuple[str, ...], message: str
) -> None:
    answer = call(*arguments)

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert answer.err.startswith("error: ")
    assert message in answer.err
    assert re.search(rf"\n  hint: protokube( {arguments[0]})? --help\n$", answer.err)


def test_an_error_as_data_keeps_what_we_want_and_advise(call: Call) -> None:
    answer = call("get", "--store", "filo:///tmp/x", "-o", "json")

    document = json.loads(answer.err)
    assert answer.code == ExitCode.REFUSED
    assert document["error"].startswith("cannot open filo:///tmp/x")
    assert "file://" in document["want"]
    assert document["hint"] == "did you mean file://?"


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["complete", "x", "-o", "json"], True),
        (["complete", "x", "-o", "yaml"], False),
        (["complete", "x", "json"], False),
        (["complete", "-o"], False),
        (["logs", "-fo", "json"], True),
        (["logs", "-ojson"], True),
        (["logs", "--output=json"], True),
        (["logs", "--output", "json"], True),
        (["export", "kubeconfig", "-o", "json.txt"], False),
        (["shell", "master-1", "--", "kubectl", "-o", "json"], False),
        (["diff", "a -o json b"], False),
        ([], False),
    ],
)
def test_data_is_asked_for_by_the_option_only(arguments: list[str], wanted: bool) -> None:
    assert wants_json(arguments) == wanted
