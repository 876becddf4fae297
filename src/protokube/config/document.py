"""A complete configuration as documents: the same kinds as the spec, in the order the schema declares.

Equal configurations give equal bytes, and reading one back and completing it changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, TextIO

import yaml

from protokube.config.complete import Config
from protokube.spec.cluster import Cluster
from protokube.spec.decode import Tree
from protokube.spec.fields import declared, element
from protokube.spec.group import InstanceGroup
from protokube.spec.parse import API_VERSION, CLUSTER_LABELS


def documents(config: Config) -> Iterator[Tree]:
    """The cluster, then its groups by name; each with the flags and files that follow."""
    yield document("Cluster", {"name": config.name}, wire(Cluster, config.cluster), config.rendered.get("", {}))
    label = {CLUSTER_LABELS[0]: config.name}
    for name, tree in config.groups.items():
        metadata = {"name": name, "labels": label}
        yield document("InstanceGroup", metadata, wire(InstanceGroup, tree), config.rendered.get(name, {}))


def document(kind: str, metadata: Tree, spec: Tree, rendered: Tree) -> Tree:
    head = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
    return head | ({"rendered": rendered} if rendered else {})


def wire(schema: type, tree: Tree) -> Tree:
    """Fields in the order of the schema; things with a name as a list again."""
    found: Tree = {}
    for name, rule in declared(schema).items():
        if name not in tree:
            continue
        value = tree[name]
        if rule.keyed:
            inner = element(rule.type)
            found[name] = [{"name": key, **wire(inner, each)} for key, each in value.items()]
        elif is_dataclass(rule.type):
            found[name] = wire(rule.type, value)  # type: ignore[arg-type]  # a schema class
        else:
            found[name] = value
    return found


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # C where PyYAML has it
    """Block style for text of several lines; no anchors: a reader should not have to look elsewhere."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def write(trees: Iterator[Tree] | list[Tree], form: str, out: TextIO) -> None:
    """As `yaml` or as `json`."""
    if form == "json":
        write_json(trees, out)
    else:
        write_yaml(trees, out)


def write_yaml(trees: Iterator[Tree] | list[Tree], out: TextIO) -> None:
    yaml.dump_all(trees, out, Dumper=_Dumper, sort_keys=False, width=10_000, allow_unicode=True, explicit_start=False)


def write_json(trees: Iterator[Tree] | list[Tree], out: TextIO) -> None:
    whole = {"apiVersion": API_VERSION, "kind": "List", "items": list(trees)}
    json.dump(whole, out, indent=2, ensure_ascii=False)
    out.write("\n")
