"""Names of the API that the masters' agents manage: reserved for them while they renew a Lease that lists them.

We detect a renewal by a change of the Lease, on our own clock: the clocks of two machines are never compared. While we
cannot watch the Lease it counts as renewed, since the agents manage these names without the API.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import msgspec

from protokube.errors import Refused
from protokube.records.api import LEASE_EXTERNAL, LEASE_MEMBERS, LEASE_NAMES, LEASE_SECONDS
from protokube.records.names import normalise, normalise_address, problem

MEMBER = "etcd-"
"""Prefix of the DNS names of etcd members."""


class _Annotations(msgspec.Struct, frozen=True, gc=False):
    names: str | None = msgspec.field(default=None, name=LEASE_NAMES)
    members: str | None = msgspec.field(default=None, name=LEASE_MEMBERS)
    external: str | None = msgspec.field(default=None, name=LEASE_EXTERNAL)


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    annotations: _Annotations | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False):
    renewed: str | None = msgspec.field(default=None, name="renewTime")
    seconds: int | None = msgspec.field(default=None, name="leaseDurationSeconds")


class Lease(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata
    spec: _Spec | None = None


@dataclass(frozen=True, slots=True)
class AgentLease:
    """The content of the agents' Lease."""

    names: frozenset[str]
    renewed: str
    seconds: float
    members: frozenset[str] = frozenset()
    """The names of etcd members."""
    external: Mapping[str, str] = field(default_factory=dict)
    """Internal by external address of masters."""


def agent_lease(lease: Lease) -> AgentLease:
    annotations, spec = lease.metadata.annotations or _Annotations(), lease.spec or _Spec()
    return AgentLease(
        _names(annotations.names),
        spec.renewed or "",
        float(spec.seconds or LEASE_SECONDS),
        members=_names(annotations.members),
        external=_addresses(annotations.external),
    )


def _names(text: str | None) -> frozenset[str]:
    names = [name for piece in (text or "").split(",") if (name := piece.strip()) and not problem(name)]
    return frozenset(map(normalise, names))


def _addresses(text: str | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for external, _, internal in (piece.strip().partition("=") for piece in (text or "").split(",")):
        with suppress(Refused):
            found[normalise_address(external)] = normalise_address(internal)
    return found


def is_member(name: str, members: Collection[str]) -> bool:
    """Whether a name belongs to an etcd member, or could belong to one that is added to the same domain later."""
    label, _, rest = name.partition(".")
    possible = label.startswith(MEMBER) and any(each.partition(".")[2] == rest for each in members)
    return possible or name in members


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names that the agents manage now, and names that they gave up and that we may take over."""

    reserved: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()
    """Names of etcd members; we never take these over."""
    external: Mapping[str, str] = field(default_factory=dict)
    """Internal by external address of masters, as the Lease last had them."""
    ends_at: float | None = None
    """When the Lease expires if it is not renewed."""
    renewed: str = ""
    """The renewTime of the Lease, by another machine's clock."""


class AgentNames:
    """Follows the Lease, and decides which names are reserved."""

    def __init__(self) -> None:
        self._last: AgentLease | None = None
        self._members: frozenset[str] = frozenset()
        """Kept when the Lease is deleted: the members still exist."""
        self._external: Mapping[str, str] = {}
        """Kept, too: the API servers may still be there."""
        self._changed_at = 0.0

    def look(self, lease: AgentLease | None, *, in_touch: bool, now: float) -> Names:
        self._members = (lease.members if lease else frozenset()) or self._members
        self._external = (lease.external if lease else {}) or self._external
        names = self._look(lease, in_touch=in_touch, now=now)
        return replace(names, members=self._members, external=self._external)

    def _look(self, lease: AgentLease | None, *, in_touch: bool, now: float) -> Names:
        if lease is None:
            if in_touch:
                self._last = None
                return Names()
            return Names(reserved=self._last.names if self._last else frozenset())
        if not in_touch or lease != self._last:  # a Lease that we cannot watch may be renewed
            self._last, self._changed_at = lease, now
        if now - self._changed_at < lease.seconds:
            return Names(reserved=lease.names, ends_at=self._changed_at + lease.seconds)
        return Names(left=lease.names)
