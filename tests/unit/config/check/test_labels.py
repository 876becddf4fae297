"""Labels and taints as the API server takes them, wherever they are set."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.config import Group, a_group, completed, problems, the_problem
from protokube.config.check.labels import is_key, is_value

QUALIFIED = re.compile(r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$")
"""As Kubernetes has it, apart from the length."""
LONG = "a" * 64


@pytest.mark.parametrize("label", ["x y", "-a", "a-", "a/b/c", "/a", "a/", "Ex.com/a", "é", LONG, "a\n", "d.:x/a"])
def test_the_name_of_a_label_is_one_that_a_node_can_have(label: str) -> None:
    problem = the_problem(a_group("pool", nodeLabels={"ok": "1", label: "1"}))

    assert problem.path == f"instanceGroups.pool.nodeLabels.{label}"
    assert problem.message == f"{label!r} is not a label key"
    assert problem.where is not None


@pytest.mark.parametrize("value", ["b c d", "-a", "a.", "a/b", "ü", LONG, "a\n"])
def test_the_value_of_a_label_is_one_that_a_node_can_have(value: str) -> None:
    problem = the_problem(a_group("pool", nodeLabels={"a": value}))

    assert (problem.path, problem.message) == (
        "instanceGroups.pool.nodeLabels.a",
        f"{value!r} is not a label value",
    )


@pytest.mark.parametrize(
    ("labels", "where"),
    [
        ({"kubelet": {"nodeLabels": {"a": "b c"}}}, "kubelet.nodeLabels.a"),
        ({"masterKubelet": {"nodeLabels": {"a b": ""}}}, "masterKubelet.nodeLabels.a b"),
    ],
)
def test_labels_that_kubelets_are_told_are_checked_too(labels: dict[str, Any], where: str) -> None:
    assert the_problem(**labels).path == where


def test_labels_that_one_groups_kubelet_is_told_are_checked_there() -> None:
    problem = the_problem(a_group("a", kubelet={"nodeLabels": {"a": "b c"}}))

    assert problem.path == "instanceGroups.a.kubelet.nodeLabels.a"


def test_labels_as_kubernetes_writes_them_are_accepted() -> None:
    labels = {"a": "", "example.com/A_b.c": "1.2-X", "kops.k8s.io/instancegroup": "nodes", "a" * 63: "b" * 63}

    assert completed(a_group("pool", nodeLabels=labels)).groups["pool"]["nodeLabels"].items() >= labels.items()


@given(st.text("aZ0-_./ é", max_size=8) | st.text("a-.", min_size=60, max_size=66))
def test_a_label_is_taken_if_and_only_if_kubernetes_takes_it(text: str) -> None:
    good = bool(QUALIFIED.match(text)) and len(text) <= 63

    assert is_value(text) == (good or not text)
    assert is_key(text) == good or "/" in text
    assert is_key(f"example.com/{text}") == good or "/" in text


@pytest.mark.parametrize(
    "text",
    ["é:NoSchedule", "a=é:NoExecute", "a/b/c:NoExecute", "a=b/c:NoExecute", f"{LONG}:NoExecute", "a=b=c:NoExecute"],
)
def test_key_and_value_of_a_taint_are_those_of_a_label(text: str) -> None:
    problem = the_problem(a_group("pool", taints=[text]))

    assert (problem.path, problem.message) == ("instanceGroups.pool.taints[0]", f"{text!r} is not a taint")
    assert "key and value are those of a label" in problem.hint


def test_a_node_has_one_taint_of_each_key_and_effect() -> None:
    taints = ["a=1:NoSchedule", "a=1:NoExecute", "a=2:NoSchedule"]
    problem = the_problem(a_group("pool", taints=taints))

    assert problem.path == "instanceGroups.pool.taints[2]"
    assert problem.message == "'a=2:NoSchedule' has the key and the effect of 'a=1:NoSchedule'"


def test_every_wrong_label_is_told_at_once_and_once() -> None:
    wrong: list[Group] = [a_group(name, nodeLabels={"a": "b c", "x y": "1"}) for name in ("a", "b")]

    assert sorted(problems(*wrong)) == [
        f"instanceGroups.{name}.nodeLabels.{label}" for name in ("a", "b") for label in ("a", "x y")
    ]
