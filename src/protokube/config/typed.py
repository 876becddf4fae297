"""The complete configuration as typed, frozen values, for the code that applies it.

Building them also proves that the configuration is complete: a required field without a value is a bug.
"""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass
from typing import Any, TypeVar, cast, get_origin

from protokube.config.complete import Config
from protokube.spec.cluster import Cluster
from protokube.spec.decode import Tree, join
from protokube.spec.fields import declared, element
from protokube.spec.group import InstanceGroup
from protokube.spec.parse import GROUPS

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """One cluster and its groups, with every value set."""

    name: str
    cluster: Cluster
    groups: dict[str, InstanceGroup]


def typed(config: Config) -> Typed:
    groups = {name: build(InstanceGroup, tree, f"{GROUPS}.{name}") for name, tree in config.groups.items()}
    return Typed(name=config.name, cluster=build(Cluster, config.cluster, ""), groups=groups)


def build(schema: type[T], tree: Tree, path: str) -> T:
    """Build an instance of a schema class from a complete tree."""
    values: dict[str, Any] = {}
    for name, rule in declared(cast("type", schema)).items():
        if name in tree:
            values[rule.attribute] = _value(rule.type, tree[name], join(path, name))
        elif not rule.optional:
            raise LookupError(f"{join(path, name)} was left undecided")
    return schema(**values)


def _value(kind: Any, value: Any, path: str) -> Any:
    if is_dataclass(kind):
        return build(cast("type[Any]", kind), value, path)
    if get_origin(kind) is dict and is_dataclass(element(kind)):
        return {name: build(element(kind), each, join(path, name)) for name, each in value.items()}
    if get_origin(kind) is list and is_dataclass(element(kind)):
        return [build(element(kind), each, f"{path}[{index}]") for index, each in enumerate(value)]
    return value
