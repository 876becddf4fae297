"""Each rule about a field of the original is reached: a warning, a problem, or the value under our name."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from builders.spec import THEIRS, under
from protokube.errors import InvalidSpec, Problem, Where
from protokube.spec.kops_rules import CLUSTER, GROUP, Ignore, Move, Refuse, Rename
from protokube.spec.kops_table import their_fields, verdict
from protokube.spec.parse import Spec, parse

RULES = [("Cluster", path, rule) for path, rule in CLUSTER.items()]
RULES += [("InstanceGroup", path, rule) for path, rule in GROUP.items()]
VALUES = ["30s", "100m", 7, False, ["7"], [{"key": "7"}], {"key": "7"}, {"key": ["7"]}, {}, []]
VALUES += ["aws", "Public", "public", "Classic", "containerd", "CoreDNS", "automatic", "Node"]
"""One of these fits any field."""


def named(kind: type) -> list[Any]:
    """The rules of one sort, as parameters with a name."""
    return [pytest.param(*each, id=f"{each[0]}-{each[1]}") for each in RULES if isinstance(each[2], kind)]


def around(path: str, value: object) -> dict[str, Any]:
    """The mapping in which this path has this value; `[]` is a list of things with a name, `{}` a mapping by name."""
    head, _, rest = path.partition(".")
    bare, inner = re.sub(r"\[\]|\{\}", "", head), around(rest, value) if rest else value
    if head.endswith("[]"):
        return {bare: [{"name": "main", **inner}] if isinstance(inner, dict) else [inner]}
    return {bare: {"main": inner} if head.endswith("{}") else inner}


def documents(kind: str, spec: dict[str, Any]) -> str:
    """A document of the original with this spec, among those it needs around it."""
    cluster: dict[str, Any] = {"cloudProvider": "aws"}
    group: dict[str, Any] = {"role": "Node"}
    (cluster if kind == "Cluster" else group).update(spec)
    both = [("Cluster", "web.example.com", cluster), ("InstanceGroup", "nodes", group)]
    whole = [
        {"apiVersion": THEIRS, "kind": each, "metadata": {"name": name}, "spec": body} for each, name, body in both
    ]
    return "\n---\n".join(json.dumps(each, indent=1) for each in whole)


def read(text: str) -> tuple[Spec | None, tuple[Problem, ...]]:
    try:
        return parse([("f.yaml", text)]), ()
    except InvalidSpec as wrong:
        return None, wrong.problems


def shown(kind: str, path: str) -> str:
    """The path as a message names it."""
    return ("" if kind == "Cluster" else "instanceGroups.nodes.") + path.replace("[]", "[0]")


def line_of(text: str, path: str) -> int:
    """Where the last part of a path stands in a text that has it once."""
    last = path.rpartition(".")[2].removesuffix("[]")
    (line,) = [number for number, line in enumerate(text.splitlines(), 1) if re.match(rf' *"{last}":', line)]
    return line


@pytest.mark.parametrize(("kind", "path", "rule"), named(Ignore))
def test_a_field_passed_over_is_a_warning_that_says_why(kind: str, path: str, rule: Ignore) -> None:
    text = documents(kind, around(path, {"enabled": "x"} if "." not in path else "x"))
    spec, problems = read(text)

    assert problems == ()
    assert spec
    (warning,) = spec.warnings
    assert (warning.path, warning.message) == (shown(kind, path), f"ignored: {rule.why}")
    assert warning.where == Where("f.yaml", line_of(text, path))


@pytest.mark.parametrize(("kind", "path", "rule"), named(Ignore))
def test_a_field_to_be_passed_over_that_has_no_value_is_not_worth_a_word(kind: str, path: str, rule: Ignore) -> None:
    spec, problems = read(documents(kind, around(path, None)))

    assert problems == ()
    assert spec
    assert spec.warnings == ()


@pytest.mark.parametrize(("kind", "path", "rule"), [each for each in named(Ignore) if each.values[2].unless])
def test_a_field_that_says_what_is_so_anyway_is_not_worth_a_word(kind: str, path: str, rule: Ignore) -> None:
    spec, _ = read(documents(kind, around(path, rule.unless == "true" or rule.unless)))

    assert spec
    assert spec.warnings == ()


@pytest.mark.parametrize(("kind", "path", "rule"), named(Refuse))
def test_a_field_that_would_make_another_cluster_is_a_problem_that_says_why(kind: str, path: str, rule: Refuse) -> None:
    text = documents(kind, around(path, "x"))
    _, (problem,) = read(text)

    assert (problem.path, problem.message) == (shown(kind, path), f"not supported: {rule.why}")
    assert problem.where == Where("f.yaml", line_of(text, path))
    assert problem.hint


@pytest.mark.parametrize(("kind", "path", "rule"), named(Refuse))
def test_a_field_to_be_refused_that_has_no_value_refuses_nothing(kind: str, path: str, rule: Refuse) -> None:
    spec, problems = read(documents(kind, around(path, None)))

    assert problems == ()
    assert spec
    assert spec.warnings == ()


def ours(kind: str, path: str) -> str:
    """The path under our names, with things with a name held by it."""
    parts, key = [], ""
    for part in path.split("."):
        bare = part.removesuffix("[]")
        key = f"{key}.{part}" if key else part
        rule = (CLUSTER if kind == "Cluster" else GROUP).get(key.removesuffix("[]"))
        parts += [rule.to if isinstance(rule, Rename) else bare, *(["main"] if part.endswith("[]") else [])]
    return ".".join(parts)


def carried_out(kind: str, path: str) -> tuple[Spec, object, str] | None:
    """A spec that reads without a word, the first value of ours that fits the field, and the text."""
    for value in VALUES:
        text = documents(kind, around(path, value))
        spec, problems = read(text)
        if spec and not spec.warnings and not problems:
            return spec, value, text
    return None


@pytest.mark.parametrize(("kind", "path", "rule"), named(Rename))
def test_a_renamed_field_arrives_under_our_name(kind: str, path: str, rule: Rename) -> None:
    found = carried_out(kind, path + "[]" * (rule.to == "members"))

    assert found
    spec, value, text = found
    place = ours(kind, path)
    tree = spec.cluster if kind == "Cluster" else spec.groups["nodes"]
    assert place.endswith(rule.to)
    assert under(tree, place) in (value, {"main": value})
    assert spec.places[("" if kind == "Cluster" else "instanceGroups.nodes.") + place].line == line_of(text, path)


def test_a_field_given_under_its_old_and_its_new_name_is_a_problem() -> None:
    spec = {"kubelet": {"eventRecordQPS": 5, "eventQPS": 6}}
    _, (problem,) = read(documents("Cluster", spec))

    assert (problem.path, problem.message) == (
        "kubelet.eventQPS",
        "is the same setting as `eventRecordQPS`, which is also given",
    )


def test_rules_that_move_a_field_say_where_to() -> None:
    assert all(rule.to for _, _, rule in RULES if isinstance(rule, Move))


def fate(kind: str, path: str) -> set[str]:
    """What becomes of a field, over all the values it might have."""
    fates = set()
    for value in VALUES:
        spec, problems = read(documents(kind, around(path, value)))
        if spec and not spec.warnings:
            return {"carried out"}
        if spec:
            fates.add("ignored")
        elif any("not supported" in each.message for each in problems):
            fates.add("refused")
    return fates


@pytest.mark.parametrize("kind", ["Cluster", "InstanceGroup"])
def test_each_field_the_original_ever_had_meets_the_fate_that_the_table_names(kind: str) -> None:
    paths = [path for each, path in their_fields() if each == kind]
    named = {path: found.what for path in paths if (found := verdict(kind, path))}

    assert {path: fate(kind, path) for path in paths} == {path: {what} for path, what in named.items()}
