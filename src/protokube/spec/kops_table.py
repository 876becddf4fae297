"""For every field of the original: carried out, ignored with a warning, or refused. `docs/kops-fields.md` shows it.

`kops_fields.txt` lists their fields of every release since 1.10. A kubelet's settings are listed once; they apply to
`kubelet` and `masterKubelet` of a cluster and to `kubelet` of a group alike.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from importlib import resources
from typing import Any, NamedTuple, get_origin

from protokube.spec.cluster import Cluster
from protokube.spec.fields import declared, element
from protokube.spec.group import InstanceGroup
from protokube.spec.kops_rules import CLUSTER, GROUP, Ignore, Move, Refuse, Rename

KINDS: dict[str, type] = {"Cluster": Cluster, "InstanceGroup": InstanceGroup}


class Verdict(NamedTuple):
    """What happens to a field, and its new name or the reason."""

    what: str
    note: str


def their_fields() -> list[tuple[str, str]]:
    """(kind, path) of each of their fields; `[]` marks a list, `{}` a mapping by name."""
    text = resources.files("protokube.spec").joinpath("kops_fields.txt").read_text("utf-8")
    pairs = (line.partition(" ") for line in text.splitlines())
    return [(kind, path) for kind, _, path in pairs]


def verdict(kind: str, path: str) -> Verdict | None:
    """What happens to their field; None if neither a rule nor our schema has it."""
    rules = CLUSTER if kind == "Cluster" else GROUP
    ours: list[str] = []
    parts = path.split(".")
    chain = [rules.get(_bare(".".join(parts[: index + 1]))) for index in range(len(parts))]
    for rule in chain:  # a rule for a field also applies to all fields under it
        if isinstance(rule, Ignore):
            return Verdict("ignored", rule.why)
        if isinstance(rule, Refuse):
            return Verdict("refused", rule.why)
    for part, rule in zip(parts, chain, strict=True):
        if isinstance(rule, Move) and _bare(part) != "etcdClusters":
            last = chain[-1]
            return Verdict("carried out", f"as {last.to if isinstance(last, Move) else rule.to}")
        ours.append(part.replace(_bare(part), rule.to) if isinstance(rule, Rename) else part)
    how = found(KINDS[kind], ours)
    if not how:
        return None
    notes = [] if ours == parts else [f"as {'.'.join(ours)}"]
    return Verdict("carried out", ", ".join(notes + ["kept as given"] * (how == "kept")))


def _bare(part: str) -> str:
    return part.removesuffix("[]").removesuffix("{}")


def found(schema: Any, parts: list[str]) -> str:
    """`typed` if our schema has this path, `kept` if it is under a free-form mapping of ours, else ""."""
    keyed = False
    for part in parts:
        if schema is Any or (get_origin(schema) is dict and element(schema) is Any):
            return "kept"
        if not is_dataclass(schema):
            return ""
        rule = declared(schema).get(_bare(part))  # type: ignore[arg-type]
        if rule is None:
            return "typed" if keyed and part == "name" else ""
        schema, keyed = rule.type, rule.keyed
        if part.endswith(("[]", "{}")):
            schema = element(schema)
    return "typed"
