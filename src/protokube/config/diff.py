"""Two complete configurations side by side, with the reason for each value."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from protokube.config.complete import Config
from protokube.config.why import flatten, reason, shown


@dataclass(frozen=True, slots=True)
class Side:
    """A value and its reason; no value where this configuration has none."""

    value: Any
    reason: str
    present: bool = True


@dataclass(frozen=True, slots=True)
class Difference:
    path: str
    left: Side
    right: Side


def differences(left: Config, right: Config) -> Iterator[Difference]:
    """Every path whose value differs, in the order of the configuration."""
    ours, theirs = flatten(left), flatten(right)
    for path in [*ours, *(each for each in theirs if each not in ours)]:
        if path not in ours or path not in theirs or ours[path] != theirs[path]:
            yield Difference(path, _side(left, ours, path), _side(right, theirs, path))


def _side(config: Config, values: dict[str, Any], path: str) -> Side:
    if path not in values:
        return Side(None, "", present=False)
    return Side(values[path], reason(config, values, path, steps=2))


def table(found: list[Difference], left: str, right: str, width: int) -> Iterator[str]:
    """The differences for a person: two columns under each path."""
    half = max(30, (width - 5) // 2)
    yield _row(left, right, half)
    for each in found:
        yield each.path
        for ours, theirs in _pairs(_column(each.left, half), _column(each.right, half)):
            yield _row(ours, theirs, half)


def _column(side: Side, width: int) -> list[str]:
    if not side.present:
        return ["-"]
    lines = textwrap.wrap(shown(side.value), width, break_long_words=True, break_on_hyphens=False) or ['""']
    return [*lines, *textwrap.wrap(f"({side.reason})", width, break_on_hyphens=False)]


def _pairs(left: list[str], right: list[str]) -> Iterator[tuple[str, str]]:
    for index in range(max(len(left), len(right))):
        yield left[index] if index < len(left) else "", right[index] if index < len(right) else ""


def _row(left: str, right: str, half: int) -> str:
    return f"  {left:<{half}} | {right}".rstrip()
