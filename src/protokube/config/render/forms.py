"""Convert settings given as text into the structure of a configuration file, and values into flags."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from protokube.spec.tree import TRUE


def thresholds(text: str) -> dict[str, str]:
    """`memory.available<100Mi,nodefs.available<10%`."""
    pairs = (part.partition("<") for part in text.split(",") if part.strip())
    return {signal.strip(): limit.strip() for signal, _, limit in pairs}


def pairs(text: str) -> dict[str, str]:
    """`memory.available=1m,nodefs.available=2m`."""
    parts = (part.partition("=") for part in text.split(",") if part.strip())
    return {name.strip(): value.strip() for name, _, value in parts}


def words(text: str) -> list[str]:
    """`pods,system-reserved`."""
    return [part.strip() for part in text.split(",") if part.strip()]


def gates(given: dict[str, str]) -> dict[str, bool]:
    """Feature gates are text in a spec, as in the original, and true or false in a file."""
    return {name: value in TRUE for name, value in given.items()}


def taints(given: list[str]) -> list[dict[str, str]]:
    """`key=value:Effect`, `key:Effect`; a missing value is empty."""
    found = []
    for text in given:
        rest, _, effect = text.rpartition(":")
        key, _, value = (rest or text).partition("=")
        found.append({"key": key, **({"value": value} if value else {}), **({"effect": effect} if rest else {})})
    return found


QUANTITY = re.compile(r"([-+]?[0-9.]+(?:[eE][-+]?\d+)?)([a-zA-Z]*)")
UNITS = {unit: Decimal(1000) ** power for power, unit in zip(range(-3, 7), ["n", "u", "m", "", *"kMGTPE"], strict=True)}
UNITS |= {f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)}


def number(text: str) -> int | float:
    """A quantity as a plain number: `100m` is 0.1."""
    found = QUANTITY.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is not a quantity")
    value = Decimal(found[1]) * UNITS[found[2]]
    return int(value) if value == value.to_integral_value() else float(value)


FORMS: dict[str, Callable[[Any], Any]] = {
    "thresholds": thresholds,
    "pairs": pairs,
    "words": words,
    "gates": gates,
    "taints": taints,
    "number": number,
}


def flag_value(value: Any, repeat: bool) -> Any:
    """The value of a flag: lists joined, unless the flag is repeated; mappings as `k=v`, sorted."""
    if isinstance(value, list):
        return value if repeat else ",".join(str(each) for each in value)
    if isinstance(value, dict):
        return ",".join(f"{key}={_word(each)}" for key, each in sorted(value.items()))
    return value


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def arguments(flags: dict[str, Any]) -> list[str]:
    """Flags as command line arguments, sorted."""
    lines = []
    for name, value in sorted(flags.items()):
        values = value if isinstance(value, list) else [value]
        lines += [f"--{name}={_word(each)}" for each in values]
    return lines
