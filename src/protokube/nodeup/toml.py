"""TOML, as far as the configuration of containerd needs it: tables, text, numbers, true and false, lists of these.

Python reads TOML since 3.11, and does not write it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

BARE = re.compile(r"[A-Za-z0-9_-]+")


def dumps(tree: Mapping[str, Any]) -> str:
    """The values of each table, then the tables in it, in the order they have. ValueError for what TOML has not."""
    return "\n".join(_table(tree, ())).strip("\n") + "\n"


def _table(tree: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    values = {name: each for name, each in tree.items() if not isinstance(each, Mapping)}
    if path and (values or not tree):
        yield f"\n[{'.'.join(map(_key, path))}]"
    for name, each in values.items():
        yield f"{_key(name)} = {_value(each)}"
    for name, each in tree.items():
        if isinstance(each, Mapping):
            yield from _table(each, (*path, name))


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case int():
            return str(value)
        case float():
            return repr(value)
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case Mapping():
            pairs = ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
    raise ValueError(f"{type(value).__name__} has no form in TOML")


def _text(value: str) -> str:
    """A JSON string is a basic string of TOML, but for code points beyond the first plane and for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
