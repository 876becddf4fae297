"""API discovery: the path of an object, from the resources that the API server reports for each group."""

from __future__ import annotations

from typing import Any, Protocol
from urllib.parse import quote

from protokube.addons.value import Ref, Tree
from protokube.errors import TryLater
from protokube.kube.client import ApiError

DEFAULT_NAMESPACE = "default"


class Gets(Protocol):
    def get(self, path: str, **query: str) -> Tree: ...


class UnknownKind(TryLater):
    """The server does not serve this kind, or not yet: its CRD may have been created a moment ago."""


class Resources:
    """Discovery of one API server; the resources of each version are read once and cached while this object lives."""

    def __init__(self, api: Gets) -> None:
        self._api = api
        self._served: dict[str, dict[str, tuple[str, bool]]] = {}

    def path(self, which: Ref, api_version: str = "") -> str:
        """The path of one object; in the server's preferred version, if none is given."""
        version = api_version or self._preferred(which.group)
        served = self._kinds(version)
        if which.kind not in served:
            raise UnknownKind(
                f"the API server knows no {which.kind} of {version}", hint="it may come with another add-on"
            )
        plural, in_namespace = served[which.kind]
        space = f"/namespaces/{quote(which.namespace or DEFAULT_NAMESPACE, safe='')}" if in_namespace else ""
        return f"{_root(version)}{space}/{plural}/{quote(which.name, safe='')}"

    def _preferred(self, group: str) -> str:
        if not group:
            return "v1"
        discovery = self._discover(f"/apis/{group}")
        return str((discovery.get("preferredVersion") or {}).get("groupVersion", "")) or f"{group}/v1"

    def _kinds(self, version: str) -> dict[str, tuple[str, bool]]:
        if version not in self._served:
            found: Any = self._discover(_root(version)).get("resources") or ()
            self._served[version] = {
                each["kind"]: (each["name"], bool(each["namespaced"])) for each in found if "/" not in each["name"]
            }
        return self._served[version]

    def _discover(self, path: str) -> Tree:
        try:
            return self._api.get(path)
        except ApiError as error:
            if error.status == 404:
                raise UnknownKind(f"the API server serves nothing at {path}") from error
            raise


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"
