"""Read YAML into a tree in which every node has its line.

PyYAML's own constructor infers types from the look of a scalar (`1.30` becomes 1.3, `no` becomes False) and drops the
lines. We use only its events and let the schema decide the type of a scalar, so `kubernetesVersion: 1.30` stays "1.30"
and every later message can name file and line. Aliases and merge keys are resolved here; a duplicate key is a problem,
never a silent choice. A file built to exhaust memory or stack is refused: PyYAML's own composer recurses in C, and
crashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import yaml

from protokube import fast_yaml
from protokube.errors import InvalidSpec, Problem, Where

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
TRUE = frozenset({"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})
FALSE = frozenset({"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})
MOST_NODES = 1_000_000
"""More than any legitimate spec has; a document whose aliases expand beyond it is refused."""
DEEPEST = 100
"""Levels of nesting; functions that walk the tree recurse, and must not run out of stack."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value as written; `plain` is false if it was quoted or a block scalar."""

    text: str
    plain: bool
    line: int

    @property
    def is_null(self) -> bool:
        return self.plain and self.text in NULLS


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list as written."""

    items: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys with their values, and the line of each key."""

    fields: dict[str, Node]
    lines: dict[str, int]
    line: int

    def text(self, key: str) -> str | None:
        """The scalar under this key, if there is one."""
        found = self.fields.get(key)
        return found.text if isinstance(found, Scalar) and not found.is_null else None


Node: TypeAlias = Scalar | Sequence | Mapping

_Loader = fast_yaml.loader()


def read_documents(text: str, file: str) -> list[Mapping]:
    """Every document of one YAML (or JSON) text; empty ones are skipped."""
    problems: list[Problem] = []
    documents: list[Mapping] = []
    try:
        for node in _Reader(text, file, problems).documents():
            if isinstance(node, Mapping):
                documents.append(node)
            elif not (isinstance(node, Scalar) and node.is_null):
                message = "a document must be a mapping with apiVersion, kind, metadata and spec"
                problems.append(Problem(path="", message=message, where=Where(file, node.line)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        last = max(1, len(text.splitlines()))  # the parser reports a missing end on the line after the last
        line = min(mark.line + 1, last) if mark else 1
        begun = error.context_mark.line + 1 if error.context_mark else line
        since = f"(from line {begun} on)" if begun != line else ""
        message = " ".join(part for part in (error.context, since, error.problem) if part)
        hint = "indent with spaces" if "'\\t'" in message or _tab_on(text, line) else ""
        problems.append(Problem(path="", message=f"not valid YAML: {message}", hint=hint, where=Where(file, line)))
    except (yaml.reader.ReaderError, UnicodeEncodeError):  # PyYAML reports no line for a forbidden character
        found = yaml.reader.Reader.NON_PRINTABLE.search(text)
        line, sign = (text.count("\n", 0, found.start()) + 1, f" U+{ord(found[0]):04X}") if found else (1, "")
        message = f"not valid YAML: the character{sign} is not allowed"
        problems.append(Problem(path="", message=message, where=Where(file, line)))
    if problems:
        raise InvalidSpec(problems)
    return documents


def _tab_on(text: str, line: int) -> bool:
    lines = text.split("\n")
    return line <= len(lines) and "\t" in lines[line - 1]


class _Anchored(NamedTuple):
    """The value of an anchor, and the nodes and levels that each alias of it adds."""

    node: Node
    nodes: int
    height: int


class _Reader:
    """Turns PyYAML's events into our nodes, and counts them, so that aliases cannot expand without bound."""

    def __init__(self, text: str, file: str, problems: list[Problem]) -> None:
        self.events: Iterator[Any] = yaml.parse(text, Loader=_Loader)
        self.file, self.problems = file, problems
        self.anchors: dict[str, _Anchored | None] = {}  # None while its value is still being read
        self.count = self.depth = self.deepest = 0

    def problem(self, line: int, message: str, hint: str = "") -> None:
        self.problems.append(Problem(path="", message=message, hint=hint, where=Where(self.file, line)))

    def documents(self) -> Iterator[Node]:
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                self.anchors = {}
                yield self.node(next(self.events))

    def node(self, event: Any) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event)
        count, outer, line = self.count, self.deepest, event.start_mark.line + 1
        if event.anchor:
            self.anchors[event.anchor] = None
        self.deepest = self.depth
        self.grow(1, 0, event)
        node = self.value(event, line)
        if event.anchor:
            self.anchors[event.anchor] = _Anchored(node, self.count - count, self.deepest - self.depth)
        self.deepest = max(outer, self.deepest)
        return node

    def value(self, event: Any, line: int) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(event.value, event.style in (None, ""), line)
        self.depth += 1
        self.grow(0, 0, event)
        sequence = isinstance(event, yaml.SequenceStartEvent)
        node = Sequence(tuple(self.items()), line) if sequence else self.mapping(line)
        self.depth -= 1
        return node

    def grow(self, nodes: int, height: int, event: Any) -> None:
        self.count += nodes
        self.deepest = max(self.deepest, self.depth + height)
        if self.count > MOST_NODES:
            raise _refused("aliases expand into too many values", event)
        if self.deepest > DEEPEST:
            raise _refused(f"nested more than {DEEPEST} deep", event)

    def alias(self, event: Any) -> Node:
        if event.anchor not in self.anchors:
            raise _refused(f"no `&{event.anchor}` before this", event)
        found = self.anchors[event.anchor]
        if found is None:
            raise _refused(f"`*{event.anchor}` is inside the value it refers to", event)
        self.grow(found.nodes, found.height, event)
        return found.node

    def items(self) -> Iterator[Node]:
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            yield self.node(event)

    def mapping(self, line: int) -> Mapping:
        fields: dict[str, Node] = {}
        lines: dict[str, int] = {}
        merged: list[Mapping] = []
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            at = event.start_mark.line + 1
            key, value = self.node(event), self.node(next(self.events))
            if not isinstance(key, Scalar) or not key.text:
                self.problem(at, "a key must be a plain word")
                continue
            if key.text == "<<" and key.plain:
                merged += self.merges(value)
                continue
            if key.text in fields:
                hint = "keep one of the two; YAML would silently take the last"
                self.problem(at, f"`{key.text}` is given twice, first on line {lines[key.text]}", hint)
            fields[key.text], lines[key.text] = value, at
        for other in merged:  # the mapping's own keys take precedence over merged ones
            for name, node in other.fields.items():
                if name not in fields:
                    fields[name], lines[name] = node, other.lines[name]
        return Mapping(fields, lines, line)

    def merges(self, node: Node) -> Iterator[Mapping]:
        for item in node.items if isinstance(node, Sequence) else (node,):
            if isinstance(item, Mapping):
                yield item
            else:
                self.problem(item.line, "`<<` merges mappings only")


def _refused(why: str, event: Any) -> yaml.MarkedYAMLError:
    return yaml.composer.ComposerError(None, None, why, event.start_mark)
