"""The TCP ports of a Service, and where connections to one of them go. Pure, but for `ask`.

Endpoints and not the Service's address: a connection then needs no kube-proxy on the way, and no pod that is not ready.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from protokube.errors import InvalidRequest, NotFound, ProtokubeError
from protokube.nearest import near, no_such

if TYPE_CHECKING:
    from protokube.kube.client import KubeApi

Tree = Mapping[str, Any]
Address = tuple[str, int]
NAMESPACE, OWNER = "default", "kubernetes.io/service-name"
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
TCP = "TCP; other protocols are not forwarded"
FORM = "[NAMESPACE/]SERVICE[:PORT], such as web, web:80 or shop/web:http"


@dataclass(frozen=True, slots=True)
class ServiceName:
    """A Service as a user names it."""

    namespace: str
    name: str
    port: str
    """Its number or name; "" for the only one."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" + (f":{self.port}" if self.port else "")


def read_name(text: str) -> ServiceName:
    """InvalidRequest for anything else than [NAMESPACE/]SERVICE[:PORT]."""
    path, colon, port = text.partition(":")
    namespace, slash, name = path.rpartition("/")
    namespace = namespace if slash else NAMESPACE
    good = all(NAME.fullmatch(each) for each in (namespace, name)) and not name.isdigit()
    if not good or (colon and not is_port(port) and not (NAME.fullmatch(port) and not port.isdigit())):
        raise InvalidRequest(f"{text!r} does not name a Service", want=FORM)
    return ServiceName(namespace, name, port)


def is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) < 65536


def choose_port(service: Tree, wanted: ServiceName) -> Tree:
    """The wanted port of a Service, the only one if none is named."""
    spec = service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        raise InvalidRequest(
            f"{wanted.namespace}/{wanted.name} is an alias of a name outside, and has no pods",
            saw=f"ExternalName {spec.get('externalName', '')}",
        )
    every: list[Tree] = list(spec.get("ports") or ())
    ports = [each for each in every if each.get("protocol", "TCP") == "TCP"]
    where = f"of {wanted.namespace}/{wanted.name}"
    if not ports:
        raise InvalidRequest(f"{wanted.namespace}/{wanted.name} has no TCP port", saw=_shown(every), want=TCP)
    if not wanted.port:
        if len(ports) > 1:
            raise InvalidRequest(
                f"{wanted.namespace}/{wanted.name} has several ports",
                saw=_shown(ports),
                hint=f"{wanted.namespace}/{wanted.name}:{ports[0]['port']}",
            )
        return ports[0]
    for each in ports:
        if wanted.port in (str(each["port"]), each.get("name")):
            return each
    for each in every:
        if wanted.port in (str(each["port"]), each.get("name")):
            raise InvalidRequest(f"port {wanted.port} {where} is a port of {each['protocol']}", want=TCP)
    names = [name for each in ports for name in (each.get("name"), str(each["port"])) if name]
    raise NotFound(f"there is no port {wanted.port} {where}", saw=_shown(ports), hint=near(wanted.port, names))


def endpoints(slices: Tree, port: Tree) -> Sequence[Address]:
    """Where this port of a Service is served now, sorted."""
    found = set()
    for each in slices.get("items") or ():
        if each.get("addressType", "IPv4") != "IPv4":
            continue
        numbers = [p.get("port") for p in each.get("ports") or () if (p.get("name") or "") == (port.get("name") or "")]
        for endpoint in each.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                found |= {
                    (address, number) for address in endpoint.get("addresses") or () for number in numbers if number
                }
    return sorted(found)


def find(api: KubeApi, wanted: ServiceName) -> Tree:
    """The Service itself; NotFound with the name that was probably meant."""
    place = f"/api/v1/namespaces/{wanted.namespace}/services"
    try:
        return api.get(f"{place}/{wanted.name}")
    except ProtokubeError as why:
        if getattr(why, "status", 0) != 404:
            raise
    namespaces = _names(api.get("/api/v1/namespaces"))
    if wanted.namespace not in namespaces:
        raise no_such("namespace", wanted.namespace, namespaces)
    raise no_such("Service", wanted.name, _names(api.get(place)), where=f"in the namespace {wanted.namespace}")


def ask(api: KubeApi, wanted: ServiceName) -> Sequence[Address]:
    """Where connections to it go now; NotFound without such a Service or port."""
    port = choose_port(find(api, wanted), wanted)
    place = f"/apis/discovery.k8s.io/v1/namespaces/{wanted.namespace}/endpointslices"
    return endpoints(api.get(place, labelSelector=f"{OWNER}={wanted.name}"), port)


def _names(tree: Tree) -> list[str]:
    return [str(each["metadata"]["name"]) for each in tree.get("items") or ()]


def _shown(ports: Sequence[Tree]) -> str:
    return ", ".join(" ".join(_words(each)) for each in ports)


def _words(port: Tree) -> Iterator[str]:
    yield str(port["port"])
    if protocol := port.get("protocol", "TCP").removeprefix("TCP"):
        yield protocol
    if name := port.get("name"):
        yield f"({name})"
