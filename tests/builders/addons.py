"""Builders for tests of add-ons, and an API server in memory: as far as an agent asks one."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from protokube.addons.value import LABEL, Addon, Ref, Tree
from protokube.errors import ProtokubeError, TryLater
from protokube.kube.client import ApiError, NoAnswer

KINDS = {
    "v1": {"ConfigMap": ("configmaps", True), "Namespace": ("namespaces", False), "Node": ("nodes", False),
           "Secret": ("secrets", True), "PersistentVolume": ("persistentvolumes", False),
           "PersistentVolumeClaim": ("persistentvolumeclaims", True), "Service": ("services", True),
           "ServiceAccount": ("serviceaccounts", True)},
    "apps/v1": {"Deployment": ("deployments", True)},
    "policy/v1": {"PodDisruptionBudget": ("poddisruptionbudgets", True)},
    "rbac.authorization.k8s.io/v1": {"ClusterRole": ("clusterroles", False),
                                     "ClusterRoleBinding": ("clusterrolebindings", False)},
}  # fmt: skip


def an_object(name: str = "one", kind: str = "ConfigMap", namespace: str = "kube-system", **more: Any) -> Tree:
    api_version = next((version for version, kinds in KINDS.items() if kind in kinds), "example.com/v1")
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def an_addon(name: str = "dns", *objects: Tree) -> Addon:
    return Addon(name=name, objects=objects or (an_object(),))


def a_ref(name: str = "one", kind: str = "ConfigMap", namespace: str = "kube-system", group: str = "") -> Ref:
    return Ref(group, kind, namespace, name)


def found(tree: Tree, addon: str = "", uid: str = "") -> Tree:
    """An object as the API shows it."""
    there = copy.deepcopy(tree)
    there["metadata"]["uid"] = uid or f"uid of {tree['kind']} {tree['metadata']['name']}"
    if addon:
        there["metadata"]["labels"] = {LABEL: addon}
    return there


class MemoryKube:
    """Objects by path. Applying what is there already changes nothing, as with a real server."""

    def __init__(self) -> None:
        self.objects: dict[str, Tree] = {}
        self.calls: list[tuple[str, str]] = []
        self.refuse: set[str] = set()
        """Paths at which a write is turned away."""
        self.fails: dict[tuple[str, str], ProtokubeError] = {}
        """By call and path: what the server answers instead."""
        self.down = False
        self._numbers = count(1)

    def put(self, path: str, tree: Tree) -> None:
        """As somebody else does it."""
        self.objects[path] = self._stamped(path, tree)

    def writes(self) -> list[tuple[str, str]]:
        return [each for each in self.calls if each[0] != "get"]

    def get(self, path: str, **query: str) -> Tree:
        self._called("get", path)
        if path.startswith(("/api/", "/apis/")) and (answer := self._discovery(path)) is not None:
            return answer
        if path in self.objects:
            return copy.deepcopy(self.objects[path])
        inside = [tree for where, tree in self.objects.items() if where.rpartition("/")[0] == path]
        if inside or path in ("/api/v1/nodes", "/apis/certificates.k8s.io/v1/certificatesigningrequests"):
            field, _, value = query.get("fieldSelector", "").partition("=")
            if field == "spec.signerName":
                inside = [tree for tree in inside if tree["spec"].get("signerName") == value]
            return copy.deepcopy({"items": inside})
        raise ApiError(404, "NotFound", f"GET {path}: not found")

    def create(self, path: str, tree: Tree) -> Tree:
        self._called("create", path)
        place = f"{path}/{tree['metadata']['name']}"
        if place in self.objects:
            raise ApiError(409, "AlreadyExists", f"POST {path}: already exists")
        self.put(place, tree)
        return copy.deepcopy(self.objects[place])

    def apply(self, path: str, tree: Tree, *, manager: str) -> Tree:
        self._called("apply", path)
        self._guard(path, tree)
        before = self.objects.get(path)
        after = _merged(before or {}, tree)
        if before is None or _content(before) != _content(after):
            self.put(path, after)
        return copy.deepcopy(self.objects[path])

    def merge(self, path: str, tree: Tree) -> Tree:
        self._called("merge", path)
        path = path.removesuffix("/approval")
        if path not in self.objects:
            raise ApiError(404, "NotFound", f"PATCH {path}: not found")
        self._guard(path, tree)
        self.put(path, _merged(self.objects[path], tree))
        return copy.deepcopy(self.objects[path])

    def delete(self, path: str, *, uid: str = "") -> Tree:
        self._called("delete", path)
        if path not in self.objects:
            raise ApiError(404, "NotFound", f"DELETE {path}: not found")
        if uid and self.objects[path]["metadata"]["uid"] != uid:
            raise TryLater(f"DELETE {path}: another object")
        return self.objects.pop(path)

    def _called(self, what: str, path: str) -> None:
        if self.down:
            raise NoAnswer("the API server does not answer")
        self.calls.append((what, path))
        if (what, path) in self.fails:
            raise self.fails[what, path]
        if what != "get" and path in self.refuse:
            raise ApiError(422, "Invalid", f"{path} is invalid")

    def _guard(self, path: str, tree: Tree) -> None:
        seen, there = tree["metadata"].get("resourceVersion") if "metadata" in tree else None, self.objects.get(path)
        if seen and (there is None or there["metadata"]["resourceVersion"] != seen):
            raise TryLater(f"{path} was changed by somebody else")

    def _stamped(self, path: str, tree: Tree) -> Tree:
        stamped, number = copy.deepcopy(tree), str(next(self._numbers))
        before = self.objects.get(path)
        stamped["metadata"]["uid"] = before["metadata"]["uid"] if before else f"uid-{number}"
        stamped["metadata"]["resourceVersion"] = number
        return stamped

    def _discovery(self, path: str) -> Tree | None:
        version = path.removeprefix("/apis/").removeprefix("/api/")
        if version in KINDS:
            kinds = KINDS[version].items()
            return {"resources": [{"kind": kind, "name": name, "namespaced": spaced} for kind, (name, spaced) in kinds]}
        groups = [each for each in KINDS if each.startswith(f"{version}/")]
        return {"preferredVersion": {"groupVersion": groups[0]}} if groups else None


def _content(tree: Tree) -> str:
    metadata = {key: value for key, value in tree["metadata"].items() if key not in ("uid", "resourceVersion")}
    return json.dumps({**tree, "metadata": metadata}, sort_keys=True)


def _merged(before: Tree, patch: Tree) -> Tree:
    after = copy.deepcopy(before)
    for key, value in patch.items():
        if value is None:
            after.pop(key, None)
        elif key == "data" and isinstance(value, dict):
            after[key] = copy.deepcopy(value)  # what an applier leaves out of its own map goes
        elif isinstance(value, dict) and isinstance(after.get(key), dict):
            after[key] = _merged(after[key], value)
        else:
            after[key] = copy.deepcopy(value)
    return after


def paths(kube: MemoryKube) -> Iterator[str]:
    yield from sorted(kube.objects)
