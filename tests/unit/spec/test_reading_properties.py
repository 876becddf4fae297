"""Whatever is written, reading it gives documents or problems, never anything else; and lines are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from builders.examples import examples
from builders.spec import EXAMPLES
from protokube.errors import InvalidSpec, Problem
from protokube.spec.parse import parse
from protokube.spec.plain import plain_documents
from protokube.spec.tree import Mapping, Node, Scalar, Sequence, read_documents

TEXTS = [each.read_text() for each in sorted(EXAMPLES.glob("*.yaml"))]
SIGNS = st.sampled_from(
    [*"[]{}:,-?&*!|>'\"%@`#~<\n\t 0aA\\", "\n  ", "\n- ", ": ", "---\n", "<<: ", "&a ", "*a", "\x00", "\x85", "\ufeff"]
)
"""What YAML gives a meaning to."""

words = st.text(max_size=8)
keys = st.text(min_size=1, max_size=8)
leaves = st.one_of(st.none(), st.booleans(), st.integers(-(10**6), 10**6), words)
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)
mappings = st.dictionaries(keys, trees, min_size=1, max_size=5)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """An example with pieces taken out, doubled, moved, or with signs put in that mean something."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        piece = draw(st.one_of(st.just(""), SIGNS, st.just(text[start:end] * 2), st.text(max_size=4)))
        text = text[:start] + piece + text[end:]
    return text


def problems_of(attempt: Callable[[], object]) -> tuple[Problem, ...]:
    try:
        attempt()
    except InvalidSpec as wrong:
        return wrong.problems
    return ()


def reads(text: str) -> None:
    """Read it as a spec, and as documents only; both give something or say what is wrong, and where."""
    lines = max(1, len(text.splitlines()))
    for found in (
        problems_of(lambda: parse([("f.yaml", text)])),
        problems_of(lambda: list(plain_documents([("f.yaml", text)]))),
    ):
        assert all(each.message for each in found)
        assert all(1 <= each.where.line <= lines for each in found if each.where)


@given(st.text())
def test_any_text_gives_documents_or_problems(text: str) -> None:
    reads(text)


@given(st.lists(SIGNS, max_size=30).map("".join))
def test_any_heap_of_signs_gives_documents_or_problems(text: str) -> None:
    reads(text)


@examples(200, suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_an_example_that_was_damaged_gives_a_spec_or_problems(text: str) -> None:
    reads(text)


def same(node: Node, value: Any, mark: yaml.Node) -> None:
    """A node holds this value, and stands where PyYAML itself says it stands."""
    assert node.line == mark.start_mark.line + 1
    if isinstance(value, dict):
        assert isinstance(node, Mapping)
        assert isinstance(mark, yaml.MappingNode)
        assert list(node.fields) == list(value)
        for (key, child), (key_mark, child_mark) in zip(value.items(), mark.value, strict=True):
            assert node.lines[key] == key_mark.start_mark.line + 1
            same(node.fields[key], child, child_mark)
    elif isinstance(value, list):
        assert isinstance(node, Sequence)
        assert isinstance(mark, yaml.SequenceNode)
        for item, child, child_mark in zip(node.items, value, mark.value, strict=True):
            same(item, child, child_mark)
    elif value is None or isinstance(value, bool):
        assert isinstance(node, Scalar)
        assert node.plain
        assert node.text == {None: "null", True: "true", False: "false"}[value]
    else:
        assert isinstance(node, Scalar)
        assert node.text == str(value)
        assert not node.is_null


@given(mappings, st.booleans())
def test_any_tree_written_as_yaml_is_read_back_with_every_line(value: dict[str, Any], flow: bool) -> None:
    text = yaml.safe_dump(value, sort_keys=False, default_flow_style=flow, width=40)

    (document,) = read_documents(text, "f.yaml")

    same(document, value, yaml.compose(text, Loader=yaml.SafeLoader))


@given(mappings)
def test_plain_documents_are_the_values_that_were_written(value: dict[str, Any]) -> None:
    text = yaml.safe_dump(value, sort_keys=False)

    assert list(plain_documents([("f.yaml", text)])) == [value]


@given(st.lists(mappings, max_size=4))
def test_as_many_documents_are_read_as_were_written(values: list[dict[str, Any]]) -> None:
    text = yaml.safe_dump_all(values, sort_keys=False)

    assert len(read_documents(text, "f.yaml")) == len(values)
