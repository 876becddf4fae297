"""Nodes as targets of other objects' names, and the names that a node asks for itself.

A node counts until it is deleted, also while it is drained: the pods on it stop asking for themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern

from protokube.controllers.dns import Ask, NodeAlias, NodeTarget
from protokube.controllers.dns.read.annotations import Wrongs, addresses_of, names_by_view
from protokube.controllers.dns.read.objects import Node
from protokube.controllers.dns.read.sources import make_source

ROLE_PREFIX, ROLE_LABEL, NO_ROLE = "node-role.kubernetes.io/", "kubernetes.io/role", "node"
SAME_ROLE = frozenset({"master", "control-plane"})
"""Kubernetes renamed one to the other, so a request for either means both."""


def node_target(node: Node) -> NodeTarget:
    """Only addresses of the types InternalIP and ExternalIP count: a host name is not an address."""
    wrongs = Wrongs()
    reported = (node.status.addresses if node.status else None) or ()
    internal, external = (
        addresses_of((each.address for each in reported if each.type == wanted), wrongs)
        for wanted in ("InternalIP", "ExternalIP")
    )
    name = intern(node.metadata.name)
    asks = [
        Ask(name=asked, view=view, target=NodeAlias("name", name, view))
        for view, names in names_by_view(node.metadata.annotations, wrongs).items()
        for asked in names
    ]
    return NodeTarget(
        name=name,
        internal=internal,
        external=external,
        roles=roles_of(node.metadata.labels or {}),
        source=make_source("node", node.metadata, asks, wrongs),
    )


def roles_of(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Every role in the labels, sorted; a node without any has the role `node`."""
    roles = {label.removeprefix(ROLE_PREFIX) for label in labels if label.startswith(ROLE_PREFIX)}
    roles.add(labels.get(ROLE_LABEL, ""))
    roles.discard("")
    if roles & SAME_ROLE:
        roles |= SAME_ROLE
    return tuple(intern(role) for role in sorted(roles or {NO_ROLE}))
