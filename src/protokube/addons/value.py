"""An add-on: a name, and objects in the order in which they are applied.

An object is identified by its API group, not by its version: the same PodDisruptionBudget is `policy/v1beta1` in one
version of Kubernetes and `policy/v1` in the next, and pruning the first as a leftover would delete both.
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
    """Identifies an object."""

    group: str
    """`apps`; "" for the core group."""
    kind: str
    namespace: str
    """"" for cluster-scoped objects."""
    name: str

    def __str__(self) -> str:
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Addon:
    """Objects that are applied and pruned together."""

    name: str
    objects: tuple[Tree, ...]

    @property
    def digest(self) -> str:
        return digest([self])

    @property
    def refs(self) -> tuple[Ref, ...]:
        return tuple(ref(each) for each in self.objects)

    def labelled(self) -> tuple[Tree, ...]:
        """The objects as they are applied, each with the label of the add-on."""
        return tuple(_with_label(each, self.name) for each in self.objects)


def ref(tree: Tree) -> Ref:
    metadata = tree["metadata"]
    return Ref(group_of(tree["apiVersion"]), tree["kind"], metadata.get("namespace") or "", metadata["name"])


def group_of(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def label_of(tree: Tree) -> str:
    """The add-on in the label of an object."""
    return str(((tree.get("metadata") or {}).get("labels") or {}).get(LABEL, ""))


def managed_part(wanted: Any, there: Any) -> Any:
    """The part of an existing object that an add-on sets: all other fields are managed by others."""
    if isinstance(wanted, dict) and isinstance(there, dict):
        return {key: managed_part(value, there.get(key)) for key, value in wanted.items()}
    return there


def _with_label(tree: Tree, name: str) -> Tree:
    marked = copy.deepcopy(tree)
    labels = marked["metadata"].get("labels") or {}
    marked["metadata"]["labels"] = {**labels, LABEL: name}
    return marked


def digest(addons: Iterable[Addon]) -> str:
    """The same for the same add-ons in the same order."""
    return hashlib.sha256(encode(list(addons))).hexdigest()


def encode(addons: Sequence[Addon]) -> bytes:
    document = [{"name": each.name, "objects": list(each.objects)} for each in addons]
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def decode(data: bytes) -> tuple[Addon, ...]:
    """Decode what `encode` wrote."""
    try:
        document = json.loads(data)
        return tuple(Addon(name=each["name"], objects=tuple(each["objects"])) for each in document)
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(
            f"the add-ons in the store cannot be read: {error}", hint="`protokube up` writes them into the store"
        ) from error
