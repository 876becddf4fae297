"""Read single objects from the API server without the cache, and only if it still serves the same cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from protokube.controllers.decoding import pages
from protokube.controllers.dns import HostAddress, NodeTarget, Source
from protokube.controllers.dns.read.annotations import Wrongs, addresses_of
from protokube.controllers.dns.read.nodes import node_target
from protokube.controllers.dns.read.objects import Endpoints, Ingress, Node, Pod, Service
from protokube.controllers.dns.read.sources import ingress_source, pod_source, service_source
from protokube.controllers.dns.read.watching import CORE, NETWORKING
from protokube.errors import TryLater
from protokube.kube.client import ApiError, NoAnswer
from protokube.records.names import address_type

ORIGIN = f"{CORE}/namespaces/kube-system"
"""This namespace exists for the whole life of a cluster, so its uid identifies the cluster."""
API_SERVERS = f"{CORE}/namespaces/default/endpoints/kubernetes"
"""One object, which the API servers themselves maintain: the address of each of them."""


class ObjectApi(Protocol):
    """Read objects and lists; `protokube.kube.session.Session` implements it."""

    def get(self, path: str, query: Mapping[str, str] | None = None) -> bytes: ...


class _Identified(msgspec.Struct):
    uid: str


class _Origin(msgspec.Struct):
    metadata: _Identified


def cluster_id(server: ObjectApi) -> str:
    """An id that is unique to the cluster."""
    found: _Origin = _decoded(_Origin, server.get(ORIGIN), ORIGIN)
    return found.metadata.uid


class FreshObjects:
    """Implements `confirm.Objects` for one round; the first read verifies that it is still the same cluster."""

    def __init__(self, server: ObjectApi, cluster: str) -> None:
        self._server, self._cluster = server, cluster
        self._same, self._silent = False, ""
        self._lists: dict[str, list[Any]] = {}

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

    def serves(self, address: str) -> bool:
        found: Endpoints | None = self._get(API_SERVERS, Endpoints)
        subsets = (found.subsets if found else None) or ()
        listed = (each.ip for one in subsets for each in (*(one.addresses or ()), *(one.not_ready_addresses or ())))
        there = addresses_of(listed, Wrongs())
        if not any(address_type(each) == address_type(address) for each in there):
            raise TryLater(f"the API servers publish no address of the same family as {address}")
        return address in there

    def who_has(self, name: str, address: str) -> str:
        for node in self._all(f"{CORE}/nodes", Node):
            target = node_target(node)
            if address in (*target.internal, *target.external):
                return f"node/{target.name}"
        for pod in self._all(f"{ORIGIN}/pods", Pod):
            if (source := pod_source(pod)) and _asks(source, name, address):
                return source.key
        return ""

    def _all(self, path: str, of: type[Any]) -> list[Any]:
        """List once per round; an object that cannot be decoded is an error, since it may be the one we look for."""
        if path not in self._lists:

            def get(query: Mapping[str, str]) -> bytes:
                content = self._content(path, query)
                if content is None:
                    raise TryLater(f"GET {path}: there is no such list")
                return content

            self._lists[path] = [_decoded(of, each, path) for page in pages(get) for each in page.items or ()]
        return self._lists[path]

    def _get(self, path: str, of: type[Any]) -> Any:
        """None only if the API server of our cluster answers that the object does not exist."""
        content = self._content(path)
        return None if content is None else _decoded(of, content, path)

    def _content(self, path: str, query: Mapping[str, str] | None = None) -> bytes | None:
        if self._silent:
            raise TryLater(self._silent)
        try:
            self._make_sure()
            return self._server.get(path, query)
        except NoAnswer as error:  # the next request would only wait for the same timeout
            self._silent = error.message
            raise
        except ApiError as error:
            if self._same and error.status == 404 and error.reason == "NotFound":
                return None
            raise TryLater(error.message) from error

    def _make_sure(self) -> None:
        if not self._same:
            if (now := cluster_id(self._server)) != self._cluster:
                raise TryLater(f"the API server serves another cluster now ({now}, not {self._cluster})")
            self._same = True


def _asks(source: Source, name: str, address: str) -> bool:
    targets = (ask.target for ask in source.asks if ask.name == name)
    return any(isinstance(target, HostAddress) and target.value == address for target in targets)


def _decoded(of: type[Any], content: bytes, path: str) -> Any:
    try:
        return msgspec.json.decode(content, type=of)
    except msgspec.MsgspecError as error:
        raise TryLater(f"GET {path}: the answer cannot be read: {error}") from error
