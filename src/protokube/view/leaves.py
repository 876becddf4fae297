"""Check the leaves of a document that somebody else wrote: each has the type that a view relies on. Pure.

TypeError or ValueError for one that has not. A store is written by many: one odd record must not break the whole view.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

LONGEST_NAME = 253
GREATEST = 2.0**63


def sentence(value: Any) -> str:
    """Free text, without what a terminal would obey or could not show."""
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} is no text")
    return "".join(each if each.isprintable() or each in "\n\t" else " " for each in value)


def name(value: Any) -> str:
    """An identifier; it may be empty."""
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} is no name")
    if len(value) > LONGEST_NAME or not value.isprintable():
        raise ValueError(f"{value[:40]!r} is no name")
    return value


def given(value: Any) -> str:
    """An identifier that is not empty."""
    if not name(value):
        raise ValueError("a name is empty")
    return str(value)


def optional_name(value: Any) -> str | None:
    return None if value is None else name(value)


def number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{type(value).__name__} is no number")
    if not -GREATEST <= value <= GREATEST or math.isnan(value):
        raise ValueError("a number that nothing here can have")
    return float(value)


def optional_number(value: Any) -> float | None:
    return None if value is None else number(value)


def whole(value: Any) -> int:
    number(value)
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no whole number")
    return value


def optional_whole(value: Any) -> int | None:
    return None if value is None else whole(value)


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{type(value).__name__} is neither true nor false")
    return value


def optional_flag(value: Any) -> bool | None:
    return None if value is None else flag(value)


def fields(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{type(value).__name__} has no fields")
    return value


def each_of(value: Any) -> Iterator[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{type(value).__name__} is no list")
    yield from value


def member(value: Any) -> str:
    """`main/a`."""
    key, slash, short = given(value).partition("/")
    if not (key and slash and short) or "/" in short:
        raise ValueError(f"{value!r} is no member")
    return f"{key}/{short}"
