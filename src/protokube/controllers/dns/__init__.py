"""Publish DNS records for annotated objects, and never remove a record that is not ours.

Nodes are targets: other objects ask for the addresses of a node or of all nodes of a role. Every decision in this
package is a pure function of the values in this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

View = Literal["internal", "external"]
"""Who sees a record: machines inside the network, or everybody."""


@dataclass(frozen=True, slots=True, order=True)
class Value:
    """A value of a record: an address (A, AAAA), or another name (CNAME)."""

    type: str
    value: str


@dataclass(frozen=True, slots=True, order=True)
class NodeAlias:
    """The current addresses of a node, or of every node of a role."""

    kind: Literal["name", "role"]
    which: str
    view: View


@dataclass(frozen=True, slots=True, order=True)
class HostAddress:
    """An address of its node that a pod reports; ignored if the node is known and reports only others."""

    type: str
    value: str
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One DNS name that an object asks for, and its target."""

    name: str
    view: View
    target: Value | NodeAlias | HostAddress | None
    """None: the object has no address yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What the cache keeps of an object that asks for a name."""

    key: str
    """`pod/kube-system/web-1`"""
    created: str
    """The creationTimestamp, as the API server writes it: the oldest object wins a name that only one can have."""
    uid: str
    asks: tuple[Ask, ...]
    wrong: tuple[str, ...] = ()
    """What cannot be published, in words for the object's owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTarget:
    """What the cache keeps of a node."""

    name: str
    internal: tuple[str, ...]
    external: tuple[str, ...]
    roles: tuple[str, ...]
    source: Source | None = None
    """What the node itself asks for, and what is wrong with it."""

    def addresses(self, view: View) -> tuple[str, ...]:
        return self.internal if view == "internal" else self.external


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """Something that an object asks for and does not get, and why, in words for its owner."""

    source: str
    """The key of the object."""
    name: str
    """The DNS name; empty if the problem is about the object itself."""
    why: str
