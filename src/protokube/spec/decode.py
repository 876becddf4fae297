"""Check a user's document against the schema, and return plain values with the line of each.

The schema decides the type of a scalar, not its look: a version stays text, `yes` is a boolean only where the schema
has a boolean. No defaults are set here and nothing is dropped: an unknown field is a problem, with the nearest known
field as the hint. All problems of a document are found in one pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, is_dataclass
from typing import Any, get_origin

from protokube.errors import Problem, Where
from protokube.nearest import near
from protokube.spec.fields import Declared, declared, element
from protokube.spec.tree import FALSE, TRUE, Mapping, Node, Scalar, Sequence

Tree = dict[str, Any]
"""Wire names to plain values; a keyed list is a mapping by name."""

INT = re.compile(r"[-+]?[0-9](_?[0-9]){0,18}$")
FLOAT = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$")
MANY = 10
"""A hint lists no more fields than this."""


@dataclass(slots=True)
class Reading:
    """The result of reading: the place of every value, all problems and all warnings."""

    places: dict[str, Where] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def problem(self, path: str, where: Where, message: str, hint: str = "") -> None:
        self.problems.append(Problem(path=path, message=message, hint=hint, where=where))

    def warn(self, path: str, where: Where | None, message: str, hint: str = "") -> None:
        self.warnings.append(Problem(path=path, message=message, hint=hint, where=where))


def join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def decode(schema: type, node: Node, path: str, file: str, reading: Reading, *, theirs: bool = False) -> Tree:
    """The fields of `schema` that the document sets, as plain values. `theirs`: a translated document of the original.

    The original drops unknown fields silently, so users have them in documents that work. In documents of the original
    an unknown field is therefore a warning; in ours it is a problem.
    """
    return _Decoder(file, reading, theirs).record(schema, node, path)


def free_form(node: Node, path: str, file: str, reading: Reading) -> Any:
    """A part without a schema, as plain values."""
    return _Decoder(file, reading).anything(node, path)


class _Decoder:
    def __init__(self, file: str, reading: Reading, theirs: bool = False) -> None:
        self.file, self.reading, self.theirs = file, reading, theirs

    def unknown(self, path: str, line: int, name: str, known: Iterable[str]) -> None:
        hint = near(name, known)
        if self.theirs:
            message = "ignored: unknown field, also to kops, which drops it silently"
            self.reading.warn(path, Where(self.file, line), message, hint)
        else:
            few = len(known := list(known)) <= MANY
            listed = f"known are {', '.join(known)}" if few else "`protokube schema` lists the known fields"
            self.problem(path, line, "unknown field", hint or listed)

    def problem(self, path: str, line: int, message: str, hint: str = "") -> None:
        self.reading.problem(path, Where(self.file, line), message, hint)

    def record(self, schema: type, node: Node, path: str) -> Tree:
        if isinstance(node, Scalar) and node.is_null:
            return {}
        if not isinstance(node, Mapping):
            message = f"expected fields of {schema.__name__}, found {_kind(node)}"
            self.problem(path or "spec", node.line, message, "write them below it, indented: name: value")
            return {}
        known = declared(schema)
        tree: Tree = {}
        for name, child in node.fields.items():
            here = join(path, name)
            rule = known.get(name)
            if rule is None:
                self.unknown(here, node.lines[name], name, known)
            elif not (isinstance(child, Scalar) and child.is_null):
                value = self.field(rule, child, here)
                if value is not None:
                    tree[name] = value
                    self.reading.places[here] = Where(self.file, node.lines[name])
        return tree

    def field(self, rule: Declared, node: Node, path: str) -> Any:
        if rule.keyed:
            return self.keyed(element(rule.type), node, path)
        value = self.value(rule.type, node, path)
        if value is not None and rule.check and (wrong := rule.check(value)):
            choices = getattr(rule.check, "choices", ())
            self.problem(path, node.line, wrong, near(str(value), choices) if choices else "")
            return None  # an invalid value must not influence other decisions
        return value

    def keyed(self, schema: type, node: Node, path: str) -> Tree | None:
        """A list of named items; a duplicate or missing name is a problem."""
        if not isinstance(node, Sequence):
            message = f"expected a list of items with a name, found {_kind(node)}"
            self.problem(path, node.line, message, "each begins with `- name:`")
            return None
        tree: Tree = {}
        for index, item in enumerate(node.items):
            name = item.text("name") if isinstance(item, Mapping) else None
            here = f"{path}[{index}]"
            if not isinstance(item, Mapping) or not name:
                hint = f"write it as `- name: {item.text}`" if isinstance(item, Scalar) else "it begins with `- name:`"
                self.problem(here, item.line, "has no `name`", hint)
                continue
            here = join(path, name)
            if name in tree:
                first = self.reading.places[here]
                message = f"the name {name!r} is taken already, on line {first.line}"
                self.problem(here, item.line, message, "give one of the two another name")
            rest = Mapping({key: each for key, each in item.fields.items() if key != "name"}, item.lines, item.line)
            self.reading.places.setdefault(here, Where(self.file, item.line))
            tree[name] = self.record(schema, rest, here)
        return tree

    def value(self, kind: Any, node: Node, path: str) -> Any:
        if is_dataclass(kind):
            return self.record(kind, node, path)  # type: ignore[arg-type]  # a schema class, not an instance
        if kind is Any:
            return self.anything(node, path)
        shape = get_origin(kind)
        if shape is list:
            return self.list(element(kind), node, path)
        if shape is dict:
            return self.map(element(kind), node, path)
        return self.scalar(kind, node, path)

    def list(self, kind: Any, node: Node, path: str) -> Any:
        if not isinstance(node, Sequence):
            hint = f"write it as a list: [{node.text}]" if isinstance(node, Scalar) else ""
            self.problem(path, node.line, f"expected a list, found {_kind(node)}", hint)
            return None
        items = [self.item(kind, item, f"{path}[{index}]") for index, item in enumerate(node.items)]
        # items that could not be decoded are reported already; null is a value only in free-form parts
        return items if kind is Any else [each for each in items if each is not None]

    def item(self, kind: Any, node: Node, path: str) -> Any:
        self.reading.places[path] = Where(self.file, node.line)
        return self.value(kind, node, path)

    def map(self, kind: Any, node: Node, path: str) -> Any:
        if not isinstance(node, Mapping):
            self.problem(path, node.line, f"expected a mapping, found {_kind(node)}")
            return None
        tree: Tree = {}
        for name, child in node.fields.items():
            here = join(path, name)
            self.reading.places[here] = Where(self.file, node.lines[name])
            # an empty value in a mapping of text is text: labels are written `node-role.kubernetes.io/master:`
            null = isinstance(child, Scalar) and child.is_null and kind is not str
            value = None if null else self.value(kind, child, here)
            if value is not None or kind is Any:
                tree[name] = value
        return tree

    def scalar(self, kind: type, node: Node, path: str) -> Any:
        if not isinstance(node, Scalar):
            only = node.items[0] if isinstance(node, Sequence) and len(node.items) == 1 else None
            hint = f"write it without a list: {only.text}" if isinstance(only, Scalar) else ""
            self.problem(path, node.line, f"expected {_WORDS[kind]}, found {_kind(node)}", hint)
            return None
        if kind is str:
            return "" if node.is_null else node.text
        if kind is bool and node.plain and node.text in TRUE | FALSE:
            return node.text in TRUE
        if kind is int and node.plain and INT.match(node.text):
            return int(node.text)
        if kind is float and node.plain and FLOAT.match(node.text):
            return float(node.text)
        quoted = not node.plain and (node.text in TRUE | FALSE or INT.match(node.text))
        hint = "remove the quotes" if quoted else ""
        self.problem(path, node.line, f"expected {_WORDS[kind]}, found {node.text!r}", hint)
        return None

    def anything(self, node: Node, path: str) -> Any:
        """Free-form parts follow the core schema of YAML 1.2; a number that would print differently stays text.

        So `no`, `1:30`, `007` and the version `1.30` are kept as written.
        """
        if isinstance(node, Sequence):
            return [self.item(Any, item, f"{path}[{index}]") for index, item in enumerate(node.items)]
        if isinstance(node, Mapping):
            return self.map(Any, node, path)
        text = node.text
        if not node.plain:
            return text
        if node.is_null:
            return None
        if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
            return text.lower() == "true"
        for number in (int, float):
            if (INT if number is int else FLOAT).match(text) and str(number(text)) == text:
                return number(text)
        return text


_WORDS: dict[type, str] = {str: "text", int: "a whole number", bool: "true or false", float: "a number"}


def _kind(node: Node) -> str:
    if isinstance(node, Scalar):
        return f"{node.text!r}"
    return "a list" if isinstance(node, Sequence) else "a mapping"
