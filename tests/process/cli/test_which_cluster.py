"""Two clusters, and a mistake: every command says in one line which clusters there are, and what to type.

Over all commands that have `--cluster`, found by walking through them: a new one cannot be left out.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from builders.command import COMMAND as COMMAND_LINE
from builders.command import Call, environment
from protokube.cli.main import cli
from protokube.errors import ExitCode
from protokube.local.base.paths import Paths

Words = tuple[str, ...]
MAKES_ONE = ("up",)
"""Takes the name of a cluster that does not exist yet."""
ARGUMENTS: dict[Words, Words] = {
    ("etcd", "accept"): ("vol-1", "--repaired"),
    ("explain",): ("member", "etcd-a"),
    ("token", "delete"): ("abcdef",),
}
"""Where the first choice, or any word, for each required argument is not enough."""


def commands(command: click.Command = cli, path: Words = ()) -> Iterator[tuple[Words, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))
    elif any("--cluster" in each.opts for each in command.params) and path[0] not in MAKES_ONE:
        yield path, command


def typed(path: Words, command: click.Command) -> Words:
    """The command with what it requires, but no cluster."""
    if path in ARGUMENTS:
        return (*path, *ARGUMENTS[path])
    required = [each for each in command.params if isinstance(each, click.Argument) and each.required]
    return (*path, *(each.type.choices[0] if isinstance(each.type, click.Choice) else "etcd-a" for each in required))


def takes_more(command: click.Command) -> bool:
    """Whether it has an argument that need not be given: a name there is one of those that it is about."""
    return any(isinstance(each, click.Argument) and (not each.required or each.nargs < 0) for each in command.params)


COMMANDS = {" ".join(path): typed(path, command) for path, command in commands()}
WITHOUT_MORE = {" ".join(path): typed(path, command) for path, command in commands() if not takes_more(command)}
every_command = pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)


@pytest.fixture(autouse=True)
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`first` and `second`, of which only the folders are there, and the remains of others."""
    state = tmp_path / "state"
    monkeypatch.setenv("PROTOKUBE_STATE", str(state))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    for name in ("first", "second"):
        Paths.of(name).create()
    (state / "removed").mkdir()
    (state / "notes.txt").write_text("no cluster")
    return state


def test_the_walk_finds_the_commands_that_there_are() -> None:
    assert {"status", "drill", "etcd members", "rollout undo", "down", "stop", "start"} <= COMMANDS.keys()


@every_command
def test_without_a_name_it_lists_them(words: Words, call: Call) -> None:
    answer = call(*words)

    assert answer.code == ExitCode.INVALID
    assert answer.err.splitlines() == [
        "error: there are several local clusters: first, second", "  hint: --cluster first",
    ]  # fmt: skip


@every_command
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("secnd", "did you mean `second`?"),
        ("FIRST", "did you mean `first`?"),
        ("removed", "protokube list"),
        ("notes.txt", "protokube list"),
        ("../state/first", "--cluster takes the name of a cluster, as `protokube list` shows it, and no file"),
        ("", "protokube list"),
    ],
)
def test_a_name_that_is_none_is_answered_with_those_that_are(words: Words, name: str, hint: str, call: Call) -> None:
    answer = call(*words, "--cluster", name)

    assert answer.code == ExitCode.INVALID
    assert answer.err.splitlines() == [
        f"error: there is no local cluster {name!r}", "  saw:  first, second", f"  hint: {hint}",
    ]  # fmt: skip


@pytest.mark.parametrize("words", WITHOUT_MORE.values(), ids=WITHOUT_MORE)
def test_a_name_in_the_wrong_place_is_answered_with_the_option(words: Words, call: Call) -> None:
    answer = call(*words, "second")

    assert answer.code == ExitCode.INVALID
    assert answer.err.splitlines()[-1] == "  hint: --cluster second"


@every_command
def test_one_that_was_never_brought_up_is_named_with_what_completes_it(words: Words, call: Call) -> None:
    if words[0] == "down":
        return
    answer = call(*words, "--cluster", "first")

    assert answer.code in ((0,) if words[0] == "stop" else (ExitCode.INVALID, ExitCode.TRY_LATER, ExitCode.REFUSED))
    assert "first" in answer.err + answer.out
    assert "bug in protokube" not in answer.err
    assert "protokube" in answer.err + answer.out, "what to type"


@pytest.mark.parametrize("words", [("drill", "kill-master"), ("drill", "watch"), ("load", "image", "x.tar")])
@pytest.mark.parametrize(("stopped", "why"), [(True, "is stopped"), (False, "does not run: its local cloud has ended")])
def test_what_needs_a_cluster_that_runs_says_how_to_start_it(
    words: Words, stopped: bool, why: str, call: Call, two: Path
) -> None:
    (two / "second" / "cloud.sqlite").touch()
    if stopped:
        (two / "second" / "stopped").touch()

    answer = call(*words, "--cluster", "second", "-o", "json")

    told = json.loads(answer.err)
    assert (answer.code, told["code"]) == (ExitCode.REFUSED, "cluster-down")
    assert told["error"] == f"second {why}"
    assert told["hint"] == "protokube start --cluster second"


def test_a_token_says_which_kubeconfig_it_takes_where_no_cluster_is_named(call: Call, tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text("apiVersion: v1\nkind: Config\n")

    answer = call("token", "list")

    assert answer.err.startswith("the cluster is that of ~/.kube/config; --cluster names one of first, second\n")


def test_all_of_them_are_not_removed_where_nobody_can_be_asked(call: Call, two: Path) -> None:
    answer = call("down", "--all")

    assert answer.code == ExitCode.INVALID
    assert answer.err.splitlines() == [
        "error: --all would remove 2 clusters with all data: first, second",
        "  want: --yes, because nobody can be asked here",
    ]
    assert (two / "first").is_dir()
    assert (two / "second").is_dir()


def test_one_and_all_is_no_request(call: Call, two: Path) -> None:
    answer = call("down", "--all", "--cluster", "first", "--yes")

    assert answer.code == ExitCode.INVALID
    assert (two / "second").is_dir()


@pytest.mark.parametrize(("typed", "stays"), [(b"n\n", True), (b"\n", True), (b"y\n", False)])
def test_on_a_terminal_all_of_them_are_listed_and_asked_about(two: Path, typed: bytes, stays: bool) -> None:
    ours, theirs = pty.openpty()
    env = environment(PROTOKUBE_STATE=str(two), TERM="dumb")
    command = [*COMMAND_LINE, "down", "--all"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True) as down:
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(ours, 4096)
        os.write(ours, typed)
        code = down.wait(60)
    os.close(theirs)
    os.close(ours)

    assert b"this removes 2 clusters with all data: first, second" in shown
    assert code == (ExitCode.STOPPED if stays else ExitCode.OK)
    assert (two / "first").exists() is stays
    assert (two / "second").exists() is stays
