"""Single objects, asked for at this very moment, of the cluster that we know and of no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from protokube.controllers.dns import NodeTarget, Source
from protokube.controllers.dns.nodes import node_target
from protokube.controllers.dns.objects import Ingress, Node, Pod, Service
from protokube.controllers.dns.sources import ingress_source, pod_source, service_source
from protokube.controllers.dns.watching import CORE, NETWORKING
from protokube.errors import TryLater
from protokube.kube.client import ApiError, NoAnswer

ORIGIN = f"{CORE}/namespaces/kube-system"
"""It is there from a cluster's first moment to its last, so its uid is that of the cluster."""


class Server(Protocol):
    def get(self, path: str, query: Mapping[str, str] | None = None) -> bytes: ...


class _Identified(msgspec.Struct):
    uid: str


class _Origin(msgspec.Struct):
    metadata: _Identified


def cluster_id(server: Server) -> str:
    """What no two clusters share."""
    found: _Origin = _decoded(_Origin, server.get(ORIGIN), ORIGIN)
    return found.metadata.uid


class FreshObjects:
    """Implements `confirm.Objects` for one round: the first question makes sure that it is still the same cluster."""

    def __init__(self, server: Server, cluster: str) -> None:
        self._server, self._cluster = server, cluster
        self._same, self._silent = False, ""

    def source(self, key: str) -> Source | None:
        kind, _, rest = key.partition("/")
        namespace, _, name = rest.partition("/")
        if kind == "node":
            found = self.node(rest)
            return found.source if found else None
        ways: dict[str, tuple[str, type[Any], Callable[[Any], Source | None]]] = {
            "pod": (f"{CORE}/namespaces/{quote(namespace)}/pods/{quote(name)}", Pod, pod_source),
            "service": (f"{CORE}/namespaces/{quote(namespace)}/services/{quote(name)}", Service, service_source),
            "ingress": (f"{NETWORKING}/namespaces/{quote(namespace)}/ingresses/{quote(name)}", Ingress, ingress_source),
        }
        if kind not in ways or not name:
            raise TryLater(f"a mark names {key!r}, which is no object that we know of: its value stays")
        path, of, keep = ways[kind]
        found = self._get(path, of)
        return None if found is None else keep(found)

    def node(self, name: str) -> NodeTarget | None:
        found = self._get(f"{CORE}/nodes/{quote(name)}", Node)
        return None if found is None else node_target(found)

    def _get(self, path: str, of: type[Any]) -> Any:
        """None only if the server of our cluster says that there is none."""
        if self._silent:
            raise TryLater(self._silent)
        try:
            self._make_sure()
            content = self._server.get(path)
        except NoAnswer as error:  # to ask for the next object would only cost the same time again
            self._silent = error.message
            raise
        except ApiError as error:
            if self._same and error.status == 404 and error.reason == "NotFound":
                return None
            raise TryLater(error.message) from error
        return _decoded(of, content, path)

    def _make_sure(self) -> None:
        if not self._same:
            if (now := cluster_id(self._server)) != self._cluster:
                raise TryLater(f"the API server serves another cluster now ({now}, not {self._cluster})")
            self._same = True


def _decoded(of: type[Any], content: bytes, path: str) -> Any:
    try:
        return msgspec.json.decode(content, type=of)
    except msgspec.MsgspecError as error:
        raise TryLater(f"GET {path}: the answer cannot be read: {error}") from error
