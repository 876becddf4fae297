"""An add-on: a name, and objects in the order in which they are applied.

An object is known by its group, not by its version: the same budget is `policy/v1beta1` to one version of Kubernetes
and `policy/v1` to the next, and to take the first away as a leftover would take away both.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from protokube.errors import Refused

LABEL = "protokube.io/addon"
Tree = dict[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """Which object."""

    group: str
    """`apps`; "" for the oldest kinds."""
    kind: str
    namespace: str
    """"" for what belongs to no namespace."""
    name: str

    def __str__(self) -> str:
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Addon:
    """Objects that come and go together."""

    name: str
    objects: tuple[Tree, ...]

    @property
    def digest(self) -> str:
        return digest([self])

    @property
    def refs(self) -> tuple[Ref, ...]:
        return tuple(ref(each) for each in self.objects)

    def labelled(self) -> tuple[Tree, ...]:
        """As they are applied: each says whose it is."""
        return tuple(_with_label(each, self.name) for each in self.objects)


def ref(tree: Tree) -> Ref:
    metadata = tree["metadata"]
    return Ref(group_of(tree["apiVersion"]), tree["kind"], metadata.get("namespace") or "", metadata["name"])


def group_of(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def label_of(tree: Tree) -> str:
    """The add-on that an object says it belongs to."""
    return str(((tree.get("metadata") or {}).get("labels") or {}).get(LABEL, ""))


def said_by(wanted: Any, there: Any) -> Any:
    """Of an object as it is, what an add-on has a say in: everything else changes without us."""
    if isinstance(wanted, dict) and isinstance(there, dict):
        return {key: said_by(value, there.get(key)) for key, value in wanted.items()}
    return there


def _with_label(tree: Tree, name: str) -> Tree:
    marked = copy.deepcopy(tree)
    labels = marked["metadata"].get("labels") or {}
    marked["metadata"]["labels"] = {**labels, LABEL: name}
    return marked


def digest(addons: Iterable[Addon]) -> str:
    """Equal for equal add-ons in equal order."""
    return hashlib.sha256(encode(list(addons))).hexdigest()


def encode(addons: Sequence[Addon]) -> bytes:
    told = [{"name": each.name, "objects": list(each.objects)} for each in addons]
    return json.dumps(told, sort_keys=True, separators=(",", ":")).encode()


def decode(data: bytes) -> tuple[Addon, ...]:
    """Read back what `encode` made."""
    try:
        told = json.loads(data)
        return tuple(Addon(name=each["name"], objects=tuple(each["objects"])) for each in told)
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"these are no add-ons: {error}", hint="`protokube up` writes them into the store") from error
