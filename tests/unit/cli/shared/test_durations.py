"""How long something may take: said with units, or as a number of seconds."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from builders.command import Call
from protokube.cli.main import COMMANDS, cli
from protokube.cli.shared.durations import Duration, WholeSeconds, show_duration
from protokube.errors import ExitCode

OF_TIME = {"timeout", "ttl", "grace", "silence", "seconds", "since", "interval", "every", "patience"}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90), ("90", 90), ("2m", 120), ("1.5h", 5400), ("250ms", 0.25), ("1 min", 60), ("1h30m", 5400),
        ("1m30s", 90), ("1d 2h 3m 4s 5ms", 93784.005), ("0", 0), (" 7s ", 7), ("2.5", 2.5),
    ],
)  # fmt: skip
def test_a_length_of_time_is_said_with_its_units(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize(
    "text",
    ["soon", "-1s", "3 parsec", "", "30s1m", "1m1m", "1m30", "30 1m", "1h-5m", "inf", "nan", "1e9", "٣s", "2M", "m",
     "1..5s"],
)  # fmt: skip
def test_what_is_no_length_of_time_is_turned_away(call: Call, text: str) -> None:
    answer = call("status", "--timeout", text)

    assert answer.code == ExitCode.INVALID
    assert f"{text!r} is not a duration: such as 90s, 2m, 1h30m" in answer.err


def test_nobody_waits_longer_than_a_machine_can_count() -> None:
    with pytest.raises(click.BadParameter, match="at most 36500d"):
        Duration().convert("9" * 400, None, None)


def test_a_time_that_counts_in_seconds_is_a_whole_number_within_its_bounds() -> None:
    assert WholeSeconds(1, 86400).convert("2m", None, None) == 120
    for text, wrong in (("500ms", "at least 1s"), ("1.5s", "whole seconds"), ("2d", "at most 1d")):
        with pytest.raises(click.BadParameter, match=wrong):
            WholeSeconds(1, 86400).convert(text, None, None)


def test_a_time_is_shown_as_one_would_type_it() -> None:
    assert [show_duration(each) for each in (90, 120, 5400, 86400, 0.25)] == ["90s", "2m", "90m", "1d", "0.25s"]


def every_option() -> Iterator[tuple[str, click.Option]]:
    def walk(path: str, command: click.Command) -> Iterator[tuple[str, click.Option]]:
        yield from ((path, each) for each in command.params if isinstance(each, click.Option))
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(f"{path} {name}", inner)

    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command
        yield from walk(name, command)


def test_every_option_that_is_a_time_takes_it_with_units_and_its_help_shows_that() -> None:
    found = {
        (path, option.opts[0]): option for path, option in every_option() if OF_TIME & {*(option.name or "").split("_")}
    }

    assert {("up", "--timeout"), ("token create", "--ttl"), ("dns-controller", "--grace")} <= set(found)
    for (path, name), option in found.items():
        assert isinstance(option.type, Duration), f"{path} {name}"
        assert option.make_metavar(click.Context(cli)) == "DURATION"
    assert not [
        (path, option.opts) for path, option in every_option() if isinstance(option.type, click.types.FloatParamType)
    ]
