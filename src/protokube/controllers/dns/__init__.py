"""Records from annotations: what objects ask for stands in DNS, and nothing else is ever lost.

Nodes are targets: other objects ask for the addresses of a node or of all nodes of a role. Everything here that decides
is a function of the values in this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

View = Literal["internal", "external"]
"""Who is to see a record: machines inside, or everybody."""


@dataclass(frozen=True, slots=True, order=True)
class Value:
    """What a record can hold: an address, or another name (CNAME)."""

    type: str
    value: str


@dataclass(frozen=True, slots=True, order=True)
class NodeAlias:
    """The addresses of a node, or of every node of a role, whatever they are at the time."""

    kind: Literal["name", "role"]
    which: str
    view: View


@dataclass(frozen=True, slots=True, order=True)
class HostAddress:
    """An address that a pod says it has of its node; it counts unless that node is known and has others."""

    type: str
    value: str
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One name that an object asks for, and what it is to answer."""

    name: str
    view: View
    target: Value | NodeAlias | HostAddress | None
    """None: the object has nothing to answer with yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """All we keep of an object that asks for something."""

    key: str
    """`pod/kube-system/web-1`"""
    created: str
    """As the API server writes it: who was there first keeps a name that only one can have."""
    uid: str
    asks: tuple[Ask, ...]
    wrong: tuple[str, ...] = ()
    """What cannot be carried out, in words for the object's owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTarget:
    """All we keep of a node."""

    name: str
    internal: tuple[str, ...]
    external: tuple[str, ...]
    roles: tuple[str, ...]
    source: Source | None = None
    """What it asks for itself, and what is wrong with it."""

    def addresses(self, view: View) -> tuple[str, ...]:
        return self.internal if view == "internal" else self.external


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """Something that an object asks for and does not get, and why, in words for its owner."""

    source: str
    """Its key."""
    name: str
    """The DNS name; empty if it is about the object itself."""
    why: str
