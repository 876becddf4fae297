"""The role of a master's Node: labels that a kubelet may not set itself, and the taints of its group.

Only role keys are managed. Other taints are set once, when the kubelet registers: if one was removed since, there was a
reason, such as a network that has become ready.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from protokube.addons.value import Tree

MASTER, CONTROL_PLANE = "node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"
ROLES = (MASTER, CONTROL_PLANE)
MACHINE = "protokube.io/machine"
"""Annotation with the machine of a Node of ours."""


def plan_node(node: Tree, labels: Mapping[str, str], taints: Sequence[str], machine: str = "") -> Tree | None:
    """A merge patch for the Node; None if nothing has to change.

    A patch replaces the list of taints as a whole, so it is bound to the resourceVersion of the Node that was read.
    """
    metadata = node.get("metadata") or {}
    has: Mapping[str, str] = metadata.get("labels") or {}
    changed: Tree = {key: value for key, value in labels.items() if has.get(key) != value}
    changed |= {key: None for key in ROLES if key in has and key not in labels}
    before = list((node.get("spec") or {}).get("taints") or [])
    after = _taints(before, [parse_taint(each) for each in taints])
    patch: Tree = {}
    if changed:
        patch["metadata"] = {"labels": changed}
    if machine and (metadata.get("annotations") or {}).get(MACHINE) != machine:
        patch.setdefault("metadata", {})["annotations"] = {MACHINE: machine}
    if after != before:
        patch.setdefault("metadata", {})["resourceVersion"] = metadata.get("resourceVersion", "")
        patch["spec"] = {"taints": after}
    return patch or None


def _taints(before: list[Tree], wanted: list[Tree]) -> list[Tree]:
    ours = [each for each in wanted if each["key"] in ROLES]
    names = {_name(each) for each in ours}
    kept = [each for each in before if each.get("key") not in ROLES or _name(each) in names]
    there = {_name(each) for each in kept}
    return [*kept, *(each for each in ours if _name(each) not in there)]


def _name(taint: Tree) -> tuple[str, str]:
    """Key and effect: a Node may have a key once for each effect."""
    return str(taint.get("key", "")), str(taint.get("effect", ""))


def parse_taint(text: str) -> Tree:
    """Parse `key=value:Effect` or `key:Effect`, which the configuration has validated."""
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def in_words(patch: Tree) -> str:
    metadata = patch.get("metadata") or {}
    labels = metadata.get("labels") or {}
    news = [f"label {key} {'removed' if value is None else 'set'}" for key, value in sorted(labels.items())]
    news += [f"{key} is {value}" for key, value in sorted((metadata.get("annotations") or {}).items())]
    if "spec" in patch:
        taints = [f"{each['key']}:{each['effect']}" for each in patch["spec"]["taints"]]
        news.append(f"taints are now {', '.join(taints) or 'none'}")
    return ", ".join(news)
