"""Read YAML into a tree whose every node knows its line.

PyYAML's own constructor decides types by the look of a scalar (`1.30` becomes 1.3, `no` becomes False) and forgets
lines. We stop at its node graph and let the schema decide what a scalar means, so `kubernetesVersion: 1.30` stays
"1.30" and every later message can name file and line. Aliases and merge keys are resolved here; a key given twice is
a problem, never a silent choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import yaml

from protokube.errors import InvalidSpec, Problem, Where

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
TRUE = frozenset({"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})
FALSE = frozenset({"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})
MOST_NODES = 5_000_000
"""More than any honest spec; a document that unfolds its aliases beyond it is refused."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value as written; `plain` is false when it stood in quotes or in a block."""

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
    """Keys with their values, and for each key the line it stands on."""

    fields: dict[str, Node]
    lines: dict[str, int]
    line: int

    def text(self, key: str) -> str | None:
        """The scalar under this key, if there is one."""
        found = self.fields.get(key)
        return found.text if isinstance(found, Scalar) and not found.is_null else None


Node: TypeAlias = Scalar | Sequence | Mapping

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_documents(text: str, file: str) -> list[Mapping]:
    """Every document of one YAML (or JSON) text; empty ones are passed over."""
    problems: list[Problem] = []
    documents: list[Mapping] = []
    reader = _Reader(file, problems)
    try:
        for root in yaml.compose_all(text, Loader=_Loader):
            node = None if root is None else reader.node(root)
            if node is None or (isinstance(node, Scalar) and node.is_null):
                continue
            if isinstance(node, Mapping):
                documents.append(node)
            else:
                message = "a document must be a mapping with apiVersion, kind, metadata and spec"
                problems.append(Problem(path="", message=message, where=Where(file, node.line)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        said = " ".join(part for part in (error.context, error.problem) if part)
        problems.append(Problem(path="", message=f"not valid YAML: {said}", where=Where(file, line)))
    except yaml.YAMLError as error:  # a character YAML forbids carries no line
        problems.append(Problem(path="", message=f"not valid YAML: {error}", where=Where(file, 1)))
    except RecursionError:
        problems.append(Problem(path="", message="not valid YAML: nested too deeply", where=Where(file, 1)))
    if problems:
        raise InvalidSpec(problems)
    return documents


class _Reader:
    """Turns PyYAML's nodes into ours; counts them, so that aliases cannot unfold without end."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file, self.problems = file, problems
        self.count = 0

    def problem(self, line: int, message: str, hint: str = "") -> None:
        self.problems.append(Problem(path="", message=message, hint=hint, where=Where(self.file, line)))

    def node(self, raw: yaml.Node) -> Node:
        self.count += 1
        line = raw.start_mark.line + 1
        if self.count > MOST_NODES:
            raise yaml.composer.ComposerError(None, None, "aliases unfold into too many values", raw.start_mark)
        if isinstance(raw, yaml.ScalarNode):
            return Scalar(raw.value, raw.style in (None, ""), line)
        if isinstance(raw, yaml.SequenceNode):
            return Sequence(tuple(self.node(item) for item in raw.value), line)
        return self.mapping(raw, line)

    def mapping(self, raw: yaml.Node, line: int) -> Mapping:
        fields: dict[str, Node] = {}
        lines: dict[str, int] = {}
        merged: list[Mapping] = []
        for key, value in raw.value:
            at = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                self.problem(at, "a key must be a plain word")
                continue
            if key.value == "<<" and key.style in (None, ""):
                merged += self.merges(value)
                continue
            if key.value in fields:
                hint = "keep one of the two; YAML would silently take the last"
                self.problem(at, f"`{key.value}` is given twice, first on line {lines[key.value]}", hint)
            fields[key.value] = self.node(value)
            lines[key.value] = at
        for other in merged:  # what stands in the mapping itself wins over what it merges
            for name, node in other.fields.items():
                if name not in fields:
                    fields[name], lines[name] = node, other.lines[name]
        return Mapping(fields, lines, line)

    def merges(self, raw: yaml.Node) -> Iterator[Mapping]:
        for item in raw.value if isinstance(raw, yaml.SequenceNode) else [raw]:
            if isinstance(item, yaml.MappingNode):
                yield self.mapping(item, item.start_mark.line + 1)
            else:
                self.problem(item.start_mark.line + 1, "`<<` merges mappings only")
