"""List every object that can ask for a name once, completely: for read-only commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

import msgspec

from protokube.controllers.decoding import pages
from protokube.controllers.dns.read.agentnames import AgentNames, Lease, Names, agent_lease
from protokube.controllers.dns.read.objects import Ingress, Node, Object, Pod, Service
from protokube.controllers.dns.read.watching import CORE, LEASES, NETWORKING
from protokube.errors import TryLater
from protokube.kube.client import ApiError
from protokube.records.api import LEASE


class PagedLists(Protocol):
    """Read lists page by page; `protokube.kube.session.Session` implements it."""

    def get(self, path: str, query: Mapping[str, str] | None = None) -> bytes: ...


def list_objects(server: PagedLists, *, namespace: str = "", ingresses: bool = False) -> list[Object]:
    """Every node, and those other objects that ask for a name; an object that cannot be decoded is left out."""
    inside = f"/namespaces/{namespace}" if namespace else ""
    kinds: list[tuple[str, type[Any]]] = [
        (f"{CORE}{inside}/pods", Pod), (f"{CORE}{inside}/services", Service), (f"{CORE}/nodes", Node),
    ]  # fmt: skip
    if ingresses:
        kinds.append((f"{NETWORKING}{inside}/ingresses", Ingress))
    return [item for path, of in kinds for item in _listed(server, path, of) if _matters(item)]


def agents_names(server: PagedLists) -> Names:
    """The agents' names, assuming that their Lease is still renewed: a single read cannot tell."""
    try:
        content = server.get(f"{LEASES}/{LEASE}")
    except ApiError as error:
        if error.status == 404:
            return Names()
        raise
    try:
        lease = agent_lease(msgspec.json.decode(content, type=Lease))
    except msgspec.MsgspecError as error:
        raise TryLater(f"the Lease {LEASE} of the agents cannot be read: {error}") from error
    return replace(AgentNames().look(lease, in_touch=True, now=0.0), renewed=lease.renewed)


def _listed(server: PagedLists, path: str, of: type[Any]) -> Iterator[Object]:
    def get(query: Mapping[str, str]) -> bytes:
        try:
            return server.get(path, query)
        except ApiError as error:
            if error.status == 410:  # the continue token expired before we had read the whole list
                raise TryLater(f"{path}: the list changed while it was read: {error.message}") from error
            raise

    decode = msgspec.json.Decoder(of).decode
    for page in pages(get):
        for content in page.items or ():
            try:
                yield decode(content)
            except msgspec.MsgspecError:
                continue


def _matters(item: Object) -> bool:
    annotations = item.metadata.annotations
    if isinstance(item, (Node, Ingress)):
        return True
    return annotations is not None and bool(annotations.internal or annotations.external)
