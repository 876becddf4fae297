"""A complete configuration as documents: the same kinds as the spec, with fields in the order of the schema.

Equal configurations give equal bytes, and reading one back and completing it changes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, TextIO

import yaml

from protokube import fast_yaml
from protokube.config.complete import Config
from protokube.spec.cluster import Cluster
from protokube.spec.decode import FLOAT, Tree
from protokube.spec.fields import declared, element
from protokube.spec.group import InstanceGroup
from protokube.spec.parse import API_VERSION, CLUSTER_LABELS

UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""JSON allows these unescaped, but JSON text is also read as YAML, which does not."""


GROUPS_ANNOTATION = "protokube.io/instance-groups"
"""The groups of this configuration: a reader need not list the store, and does not pick up stale groups."""


def documents(config: Config) -> Iterator[Tree]:
    """The cluster, then its groups by name; each with its rendered flags and files."""
    head = {"name": config.name, "annotations": {GROUPS_ANNOTATION: ",".join(config.groups)}}
    yield document("Cluster", head, wire(Cluster, config.cluster), config.rendered.get("", {}))
    label = {CLUSTER_LABELS[0]: config.name}
    for name, tree in config.groups.items():
        metadata = {"name": name, "labels": label}
        yield document("InstanceGroup", metadata, wire(InstanceGroup, tree), config.rendered.get(name, {}))


def document(kind: str, metadata: Tree, spec: Tree, rendered: Tree) -> Tree:
    head = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
    return head | ({"rendered": rendered} if rendered else {})


def wire(schema: type, tree: Tree) -> Tree:
    """Fields in the order of the schema; mappings by name become lists of named items again."""
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


class _Dumper(fast_yaml.dumper()):  # type: ignore[misc]  # a base that is chosen at run time
    """Block style for multi-line text; no anchors, so that every value is readable in place."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _number(dumper: Any, value: float) -> Any:
    """As JSON shows it, so that reading it back gives the same number."""
    return dumper.represent_scalar("tag:yaml.org,2002:float", repr(value))


_Dumper.add_representer(str, _text)
_Dumper.add_representer(float, _number)
# PyYAML reads only 1.0e-05 as a number, our reader and Go's also 1e-05: write numbers plain, and quote such text
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, list("-+.0123456789"))


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
    text = json.dumps(whole, indent=2, ensure_ascii=False)
    out.write(UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")
