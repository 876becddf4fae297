"""Durations on the command line: `90s`, `2m`, `1h30m`; a plain number counts seconds, as it always did."""

from __future__ import annotations

import itertools
import re
from typing import Any

import click

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
LONGEST = 36500 * 86400.0
"""Seconds. What waits cannot be told to wait for much longer."""
PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|min|s|m|h|d)\s*", re.ASCII)
NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)


class Duration(click.ParamType[float]):
    """Seconds, from text such as `90s`, `2m`, `1h30m`, `1.5h`, `30d`, or a number of seconds."""

    name = "duration"

    def __init__(self, least: float = 0.0, most: float = LONGEST) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return value
        seconds = read_duration(str(value))
        if seconds is None:
            self.fail(f"{value!r} is not a duration: such as 90s, 2m, 1h30m, 30d", param, ctx)
        if seconds < self.least:
            self.fail(f"{value!r} is too short: at least {show_duration(self.least)}", param, ctx)
        if seconds > self.most:
            self.fail(f"{value!r} is too long: at most {show_duration(self.most)}", param, ctx)
        return seconds


class WholeSeconds(Duration):
    """The same, for what counts in whole seconds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        seconds = super().convert(value, param, ctx)
        if seconds != int(seconds):
            self.fail(f"{value!r} is not a number of whole seconds", param, ctx)
        return int(seconds)


def read_duration(text: str) -> float | None:
    """Seconds; None if the text is no duration. Each unit at most once, the longer before the shorter."""
    text = text.strip()
    if NUMBER.fullmatch(text):
        return float(text)
    parts, end = [], 0
    while found := PART.match(text, end):
        parts.append((float(found[1]), UNITS[found[2]]))
        end = found.end()
    units = [unit for _, unit in parts]
    if not parts or end != len(text) or any(left <= right for left, right in itertools.pairwise(units)):
        return None
    return sum(number * unit for number, unit in parts)


def show_duration(seconds: float) -> str:
    """The shortest text for it: 90s, 2m, 30d."""
    for unit in ("d", "h", "m"):
        if seconds >= UNITS[unit] and seconds % UNITS[unit] == 0:
            return f"{seconds / UNITS[unit]:g}{unit}"
    return f"{seconds:g}s"
