"""Whatever a document holds, checking it against the schema finds problems or values of the right types."""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from typing import Any, get_args, get_origin

import jsonschema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protokube.errors import Where
from protokube.spec.cluster import Cluster
from protokube.spec.decode import Reading, decode
from protokube.spec.fields import Declared, declared, duration, element, quantity
from protokube.spec.group import InstanceGroup
from protokube.spec.parse import API_VERSION, parse
from protokube.spec.schema import json_schema
from protokube.spec.tree import Mapping, Node, Scalar, Sequence

NAMES = sorted({name for schema in (Cluster, InstanceGroup) for name in declared(schema)} | {"name", "mtu"})
WORDS = ["", "~", "null", "1", "-1", "1_", "007", "1.30", "1e999", "9" * 5000, "yes", "true", "30s", "512Mi", "aws"]
VALIDATOR = jsonschema.Draft202012Validator(json_schema())

scalars = st.builds(Scalar, st.sampled_from(WORDS) | st.text(max_size=6), st.booleans(), st.integers(1, 99))


def as_mapping(fields: dict[str, Node]) -> Mapping:
    return Mapping(fields, {name: index for index, name in enumerate(fields, 1)}, 1)


def nodes(keys: st.SearchStrategy[str]) -> st.SearchStrategy[Node]:
    """Any tree at all."""
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda items: Sequence(tuple(items), 1)),
            st.dictionaries(keys, inner, max_size=4).map(as_mapping),
        ),
        max_leaves=12,
    )


anything = nodes(st.sampled_from(NAMES) | st.text(min_size=1, max_size=4))


@st.composite
def like(draw: st.DrawFn, schema: type, depth: int = 3) -> Node:
    """A tree in the shape of a schema, with something else here and there."""
    fields: dict[str, Node] = {}
    for name in draw(st.lists(st.sampled_from(sorted(declared(schema))), max_size=4, unique=True)):
        kind = declared(schema)[name].type
        inner = element(kind) if get_origin(kind) in (list, dict) else kind
        if depth and is_dataclass(inner) and draw(st.integers(0, 9)):
            assert isinstance(inner, type)
            node = draw(like(inner, depth - 1))
            if declared(schema)[name].keyed:
                items = [node, draw(like(inner, depth - 1)), draw(anything)]
                node = Sequence(tuple(_named(each, draw(st.sampled_from("ab"))) for each in items), 1)
            fields[name] = node
        else:
            fields[name] = draw(anything)
    return as_mapping(fields)


def _named(node: Node, name: str) -> Node:
    return as_mapping({"name": Scalar(name, True, 1), **node.fields}) if isinstance(node, Mapping) else node


def fits(kind: Any, value: Any) -> bool:
    """Whether a decoded value is of the type the schema declares."""
    if is_dataclass(kind):
        assert isinstance(kind, type)
        rules = declared(kind)
        return set(value) <= set(rules) and all(fits_field(rules[name], each) for name, each in value.items())
    if get_origin(kind) is list:
        return isinstance(value, list) and all(fits(element(kind), each) for each in value)
    if get_origin(kind) is dict:
        return isinstance(value, dict) and all(each is None or fits(element(kind), each) for each in value.values())
    return kind is Any or type(value) is kind


def fits_field(rule: Declared, value: Any) -> bool:
    if rule.keyed:
        return isinstance(value, dict) and all(fits(element(rule.type), each) for each in value.values())
    return fits(rule.type, value)


def check(schema: type, node: Node) -> None:
    reading = Reading()
    tree = decode(schema, node, "", "f.yaml", reading)
    if not reading.problems:
        assert fits(schema, tree)
    for problem in reading.problems:
        assert problem.path
        assert problem.message
        assert isinstance(problem.where, Where)


@given(anything)
def test_any_tree_gives_problems_or_a_spec_of_the_declared_types(node: Node) -> None:
    check(Cluster, node)
    check(InstanceGroup, node)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(like(Cluster))
def test_a_tree_in_the_shape_of_a_cluster_gives_problems_or_the_declared_types(node: Node) -> None:
    check(Cluster, node)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(like(InstanceGroup))
def test_a_tree_in_the_shape_of_a_group_gives_problems_or_the_declared_types(node: Node) -> None:
    check(InstanceGroup, node)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(like(Cluster))
def test_what_warns_in_a_document_of_the_original_is_a_problem_in_ours(node: Node) -> None:
    ours, theirs = Reading(), Reading()
    tree = decode(Cluster, node, "", "f.yaml", ours)

    assert decode(Cluster, node, "", "f.yaml", theirs, theirs=True) == tree
    assert sorted(each.path for each in ours.problems) == sorted(
        each.path for each in [*theirs.problems, *theirs.warnings]
    )


# --- what we accept, an editor with our JSON Schema accepts


def good_value(rule: Declared, kind: Any) -> st.SearchStrategy[Any]:
    if is_dataclass(kind):
        assert isinstance(kind, type)
        return good(kind)
    if get_origin(kind) is list:
        return st.lists(good_value(rule, element(kind)), max_size=2)
    if get_origin(kind) is dict:
        return st.dictionaries(st.sampled_from(["a", "b"]), good_value(rule, get_args(kind)[1]), max_size=2)
    if choices := getattr(rule.check, "choices", None):
        return st.sampled_from(choices)
    if bounds := getattr(rule.check, "bounds", None):
        return st.integers(bounds[0], bounds[1] if bounds[1] is not None else 10**6)
    if within := getattr(rule.check, "examples", None):
        return st.sampled_from(within)
    examples = {duration: "1h30m", quantity: "512Mi"}
    for checked, example in examples.items():
        if rule.check is checked:
            return st.just(example)
    plain = {bool: st.booleans(), int: st.integers(0, 9), float: st.floats(0, 1), str: st.sampled_from(["a", "b c"])}
    return plain.get(kind, st.sampled_from([1, "a", True, [1], {"a": 1}]))


@st.composite
def good(draw: st.DrawFn, schema: type) -> dict[str, Any]:
    """Fields of a schema with values that fit."""
    rules = declared(schema)
    tree: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from(sorted(rules)), max_size=4, unique=True)):
        rule = rules[name]
        if rule.keyed:
            tree[name] = [{"name": "one", **draw(good(element(rule.type)))}]
        else:
            tree[name] = draw(good_value(rule, rule.type))
    return tree


def a_document(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": "dev.example.com"}, "spec": spec}


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(good(Cluster), good(InstanceGroup))
def test_what_we_accept_the_schema_for_editors_accepts_too(cluster: dict[str, Any], group: dict[str, Any]) -> None:
    documents = [a_document("Cluster", cluster), a_document("InstanceGroup", group)]

    parse([("f.yaml", "\n---\n".join(json.dumps(each) for each in documents))])

    for each in documents:
        VALIDATOR.validate(each)
