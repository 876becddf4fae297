"""Frozen values as JSON trees and back: strictly, and with the path of everything that is wrong.

The types of the fields are the format. A field of a value that is left at its default is left out of the tree, since
clouds limit the size of launch data; an unknown field is a problem, so that nothing is lost in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from protokube.errors import Problem
from protokube.nearest import near
from protokube.spec.fields import wire_name

WORDS: dict[Any, str] = {
    str: "text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null",
    Mapping: "an object", dict: "an object", tuple: "a list", list: "a list",
}  # fmt: skip

MANY = 10
"""A hint lists no more fields than this."""


def encode(value: Any) -> Any:
    """Plain values for JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            wire_name(each.name): encode(found)
            for each in fields(value)
            if (found := getattr(value, each.name)) != _default(each)
        }
    if isinstance(value, Mapping):
        return {str(name): encode(each) for name, each in value.items()}
    return [encode(each) for each in value] if isinstance(value, tuple | list) else value


def decode(kind: Any, tree: Any, path: str, problems: list[Problem]) -> Any:
    """A value of this type. What is wrong is added to `problems`; then the result must not be used."""
    if kind is Any:
        return tree
    if is_dataclass(kind):
        return _record(cast("type", kind), tree, path, problems)
    shape, inner = get_origin(kind), get_args(kind)
    if shape in (Union, UnionType):
        return _either(inner, tree, path, problems)
    if shape in (tuple, list) and isinstance(tree, list):
        items = [decode(inner[0], each, f"{path}[{index}]", problems) for index, each in enumerate(tree)]
        return tuple(items) if shape is tuple else items
    if shape is not None and issubclass(shape, Mapping) and isinstance(tree, dict):
        return {name: decode(inner[1], each, f"{path}.{name}", problems) for name, each in tree.items()}
    if isinstance(tree, str) and not _is_text(tree):
        problems.append(Problem(path=path, message="is not text: it has half of a character"))
        return None
    if shape is None and _is_scalar(kind, tree):
        return float(tree) if kind is float else tree
    _wrong(path, _word(kind), tree, problems)
    return None


def _record(kind: type, tree: Any, path: str, problems: list[Problem]) -> Any:
    if not isinstance(tree, dict):
        _wrong(path, "an object", tree, problems)
        return None
    known, count, values = _fields(kind), len(problems), {}
    for name, each in tree.items():
        here = f"{path}.{name}" if path else name
        if name in known:
            field, hint = known[name]
            values[field.name] = decode(hint, each, here, problems)
        else:
            hint = near(name, known) or (f"known are {', '.join(known)}" if len(known) <= MANY else "")
            problems.append(Problem(path=here, message="no such field", hint=hint))
    for name, (field, _) in known.items():
        if field.name not in values and _default(field) is MISSING and name not in tree:
            problems.append(Problem(path=f"{path}.{name}" if path else name, message="is missing"))
    return kind(**values) if len(problems) == count else None


def _either(kinds: tuple[Any, ...], tree: Any, path: str, problems: list[Problem]) -> Any:
    """The first type that fits; with one besides None, its problems."""
    if tree is None and NoneType in kinds:
        return None
    rest = [each for each in kinds if each is not NoneType]
    tried: list[Problem] = []
    for each in rest:
        tried = []
        value = decode(each, tree, path, tried)
        if not tried:
            return value
    if len(rest) == 1:
        problems.extend(tried)
    else:
        _wrong(path, " or ".join(dict.fromkeys(map(_word, rest))), tree, problems)
    return None


def _is_scalar(kind: Any, tree: Any) -> bool:
    if kind is bool or isinstance(tree, bool):
        return kind is bool and isinstance(tree, bool)
    return isinstance(tree, (int, float) if kind is float else kind)


def _is_text(text: str) -> bool:
    """JSON can name one half of a pair of surrogates, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _wrong(path: str, want: str, tree: Any, problems: list[Problem]) -> None:
    # The value itself is not shown: it may be the content of a file.
    found = WORDS.get(type(tree), type(tree).__name__)
    problems.append(Problem(path=path, message=f"is not {want}", hint=f"found {found}"))


def _word(kind: Any) -> str:
    return WORDS.get(get_origin(kind) or kind, "an object")


@cache
def _fields(kind: type) -> dict[str, tuple[Field[Any], Any]]:
    hints = get_type_hints(kind)
    return {wire_name(each.name): (each, hints[each.name]) for each in fields(kind)}


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default
