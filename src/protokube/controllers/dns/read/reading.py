"""Decode one object to what the cache keeps of it.

The cache holds no object that asks for nothing. One that cannot be decoded must not stop the others: the cache keeps
its name and the error, so that its owner learns of it. It then asks for nothing but loses nothing either: before a
value is removed, its object is read again (`write.confirm`), and one that cannot be decoded keeps the value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from protokube.controllers.dns import NodeTarget, Source
from protokube.controllers.dns.read.nodes import node_target
from protokube.controllers.dns.read.objects import Ingress, Metadata, Node, Pod, Service
from protokube.controllers.dns.read.sources import ingress_source, key_of, pod_source, service_source

T = TypeVar("T")
K = TypeVar("K")
Read = Callable[[bytes | Raw], K | None]


class Name(Struct, frozen=True, gc=False):
    """As few fields as possible, so that almost any object can be decoded."""

    name: str
    namespace: str = ""


class Named(Struct, frozen=True, gc=False):
    metadata: Name


def _reader(of: type[T], keep: Callable[[T], K | None], odd: Callable[[Source], K]) -> Read[K]:
    decode, name = msgspec.json.Decoder(of).decode, msgspec.json.Decoder(Named).decode
    word = of.__name__.lower()

    def read(content: bytes | Raw) -> K | None:
        try:
            found = decode(content)
        except msgspec.DecodeError as error:
            named = name(content).metadata
            why = f"it cannot be read, so its names stay as they are: {error}"
            key = key_of(word, Metadata(name=named.name, namespace=named.namespace))
            return odd(Source(key=key, created="", uid="", asks=(), wrong=(why,)))
        return keep(found)

    return read


def _odd_source(source: Source) -> Source:
    return source


def _odd_node(source: Source) -> NodeTarget:
    return NodeTarget(name=source.key.removeprefix("node/"), internal=(), external=(), roles=(), source=source)


read_pod: Read[Source] = _reader(Pod, pod_source, _odd_source)
read_service: Read[Source] = _reader(Service, service_source, _odd_source)
read_ingress: Read[Source] = _reader(Ingress, ingress_source, _odd_source)
read_node: Read[NodeTarget] = _reader(Node, node_target, _odd_node)
