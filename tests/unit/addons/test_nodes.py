"""Roles of Nodes: what is ours is set right, everything else stays."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from protokube.addons.nodes import CONTROL_PLANE, MASTER, ROLES, in_words, parse_taint, plan_node
from protokube.addons.value import Tree

TAINT = f"{CONTROL_PLANE}:NoSchedule"
KEYS = st.sampled_from([*ROLES, "example.com/mine", "node.kubernetes.io/not-ready"])
TAINTS = st.fixed_dictionaries({"key": KEYS, "effect": st.sampled_from(["NoSchedule", "NoExecute"])})
WANTED = st.lists(st.sampled_from([TAINT, f"{MASTER}:NoSchedule", "example.com/mine=x:NoSchedule"]), unique=True)
LABELS = st.dictionaries(KEYS, st.sampled_from(["", "x"]))


def a_node(labels: dict[str, str] | None = None, taints: list[Tree] | None = None) -> Tree:
    return {"metadata": {"name": "m", "labels": labels or {}, "resourceVersion": "7"}, "spec": {"taints": taints or []}}


def patched(node: Tree, patch: Tree | None) -> Tree:
    labels = dict(node["metadata"]["labels"])
    for key, value in ((patch or {}).get("metadata") or {}).get("labels", {}).items():
        labels.pop(key, None)
        if value is not None:
            labels[key] = value
    return a_node(labels, ((patch or {}).get("spec") or node["spec"])["taints"])


@given(LABELS, st.lists(TAINTS, unique_by=str), LABELS, WANTED)
def test_a_node_is_right_after_one_patch_and_what_is_not_ours_stays(
    labels: dict[str, str], taints: list[Tree], wanted: dict[str, str], wanted_taints: list[str]
) -> None:
    node = a_node(labels, taints)

    after = patched(node, plan_node(node, wanted, wanted_taints))

    assert plan_node(after, wanted, wanted_taints) is None
    assert wanted.items() <= after["metadata"]["labels"].items()
    foreign = [each for each in taints if each["key"] not in ROLES]
    assert [each for each in after["spec"]["taints"] if each["key"] not in ROLES] == foreign
    kept = {key: value for key, value in labels.items() if key not in ROLES and key not in wanted}
    assert kept.items() <= after["metadata"]["labels"].items()


def test_a_master_of_an_old_version_gets_the_names_of_the_new_one_and_loses_the_old() -> None:
    node = a_node({MASTER: "", "a": "b"}, [{"key": MASTER, "effect": "NoSchedule"}])

    patch = plan_node(node, {CONTROL_PLANE: ""}, [TAINT])

    assert patch == {
        "metadata": {"labels": {CONTROL_PLANE: "", MASTER: None}, "resourceVersion": "7"},
        "spec": {"taints": [{"key": CONTROL_PLANE, "effect": "NoSchedule"}]},
    }
    assert in_words(patch) == (
        f"label {CONTROL_PLANE} set, label {MASTER} removed, taints are now {CONTROL_PLANE}:NoSchedule"
    )


def test_a_taint_that_somebody_took_away_for_a_reason_is_not_set_again() -> None:
    assert (
        plan_node(a_node({CONTROL_PLANE: ""}), {CONTROL_PLANE: ""}, ["cni.example/not-ready=true:NoSchedule"]) is None
    )


def test_labels_alone_do_not_depend_on_what_the_node_was_a_moment_ago() -> None:
    patch: Any = plan_node(a_node(), {CONTROL_PLANE: ""}, [])

    assert patch == {"metadata": {"labels": {CONTROL_PLANE: ""}}}


def test_a_taint_may_have_a_value() -> None:
    assert parse_taint("a/b=c:NoExecute") == {"key": "a/b", "value": "c", "effect": "NoExecute"}
    assert parse_taint("a/b:NoExecute") == {"key": "a/b", "effect": "NoExecute"}
