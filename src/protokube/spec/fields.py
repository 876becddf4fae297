"""Declare a field of the schema: its wire name, and the flag or file entry of the component that it sets."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

Check = Callable[[Any], str | None]
"""Returns what is wrong with a value; None if nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One field as the schema declares it."""

    name: str
    attribute: str
    type: Any
    optional: bool = True
    doc: str = ""
    flag: str = ""
    repeat: bool = False
    file: str = ""
    since: str = ""
    until: str = ""
    form: str = ""
    keyed: bool = False
    check: Check | None = None


def spec_field(
    doc: str = "", *, name: str = "", check: Check | None = None, keyed: bool = False, **settings: Any
) -> Any:
    """A field of the schema. `keyed`: written as a list of named items, stored as a mapping by name."""
    return field(default=None, metadata={"doc": doc, "name": name, "check": check, "keyed": keyed, **settings})


def setting(
    *,
    flag: str = "",
    file: str = "",
    since: str = "",
    until: str = "",
    repeat: bool = False,
    form: str = "",
    name: str = "",
    doc: str = "",
    check: Check | None = None,
) -> Any:
    """A setting of a component: its flag, and its entry in the component's configuration file where it has one.

    `since` and `until` bound the versions whose file has the entry; `form` names the conversion from the text of a flag
    to the structure in the file.
    """
    return spec_field(
        doc, name=name, check=check, flag=flag, file=file, since=since, until=until, repeat=repeat, form=form
    )


def wire_name(attribute: str) -> str:
    """`max_pods` in Python is `maxPods` in a document."""
    head, *rest = attribute.split("_")
    return head + "".join(word.capitalize() for word in rest)


@cache
def declared(schema: type) -> dict[str, Declared]:
    """The fields of one schema class by wire name, in the order they are declared."""
    hints = get_type_hints(schema)
    found: dict[str, Declared] = {}
    for each in fields(schema):
        metadata = dict(each.metadata)
        name = metadata.pop("name", "") or wire_name(each.name)
        kind, optional = _unwrap(hints[each.name])
        found[name] = Declared(name=name, attribute=each.name, type=kind, optional=optional, **metadata)
    return found


def _unwrap(hint: Any) -> tuple[Any, bool]:
    """`int | None` is an int that may be unset even in a complete configuration."""
    parts = get_args(hint)
    if type(None) in parts and get_origin(hint) is not dict:
        rest = [part for part in parts if part is not type(None)]
        return rest[0], True
    return hint, False


def element(kind: Any) -> Any:
    """The element type of a list or a mapping."""
    return get_args(kind)[-1]


DURATION = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+|0")
PART = re.compile(r"([0-9]+(?:\.[0-9]*)?)(ns|us|µs|ms|s|m|h)")
SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
QUANTITY = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+|[KMGTPE]i|[numkMGTPE])?")


def duration(value: str) -> str | None:
    """Go notation, as every Kubernetes component reads it."""
    return None if DURATION.fullmatch(value) else f"{value!r} is not a duration such as 30s, 5m or 1h30m"


def seconds(value: str) -> float:
    """A duration in seconds."""
    total = sum(float(number) * SECONDS[unit] for number, unit in PART.findall(value))
    return -total if value.startswith("-") else total


def lasting(least: str, most: str) -> Check:
    """A duration within bounds."""

    def check(value: str) -> str | None:
        if wrong := duration(value):
            return wrong
        if seconds(value) < seconds(least):
            return f"{value} is shorter than {least}"
        return f"{value} is longer than {most}" if seconds(value) > seconds(most) else None

    check.examples = (least, most)  # type: ignore[attr-defined]  # the JSON Schema shows them
    return check


def quantity(value: str) -> str | None:
    """Kubernetes notation for amounts of memory, CPU and the like."""
    return None if QUANTITY.fullmatch(value) else f"{value!r} is not a quantity such as 100m, 1.5 or 512Mi"


def one_of(*choices: str) -> Check:
    """One of the given words."""

    def check(value: str) -> str | None:
        return None if value in choices else f"{value!r} is not one of {', '.join(choices)}"

    check.choices = choices  # type: ignore[attr-defined]  # the JSON Schema lists them
    return check


def at_least(least: int, most: int | None = None) -> Check:
    """A whole number within bounds."""

    def check(value: int) -> str | None:
        if value < least:
            return f"{value} is less than {least}"
        return f"{value} is more than {most}" if most is not None and value > most else None

    check.bounds = (least, most)  # type: ignore[attr-defined]  # the JSON Schema states them
    return check
