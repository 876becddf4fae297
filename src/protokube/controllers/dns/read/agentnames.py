"""Whose the names of the API are: the agents', for as long as they renew a Lease that says so.

Whether it is renewed is seen by its changing, on our own clock: the clocks of two machines are never compared. What we
cannot see counts as renewed, since the agents look after these names without any API.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import msgspec

from protokube.records.api import LEASE_MEMBERS, LEASE_NAMES, LEASE_SECONDS
from protokube.records.names import normalise, problem

MEMBER = "etcd-"
"""How the names of members begin."""


class _Annotations(msgspec.Struct, frozen=True, gc=False):
    names: str | None = msgspec.field(default=None, name=LEASE_NAMES)
    members: str | None = msgspec.field(default=None, name=LEASE_MEMBERS)


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    annotations: _Annotations | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False):
    renewed: str | None = msgspec.field(default=None, name="renewTime")
    seconds: int | None = msgspec.field(default=None, name="leaseDurationSeconds")


class Lease(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata
    spec: _Spec | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What the agents' Lease says."""

    names: frozenset[str]
    renewed: str
    seconds: float
    members: frozenset[str] = frozenset()
    """The names of etcd members."""


def told_by(lease: Lease) -> Told:
    said, spec = lease.metadata.annotations or _Annotations(), lease.spec or _Spec()
    return Told(
        _names(said.names), spec.renewed or "", float(spec.seconds or LEASE_SECONDS), members=_names(said.members)
    )


def _names(said: str | None) -> frozenset[str]:
    names = [name for piece in (said or "").split(",") if (name := piece.strip()) and not problem(name)]
    return frozenset(map(normalise, names))


def is_member(name: str, members: Collection[str]) -> bool:
    """Whether a name is that of an etcd member, or of one that may come beside those that there are."""
    label, _, rest = name.partition(".")
    beside = label.startswith(MEMBER) and any(each.partition(".")[2] == rest for each in members)
    return beside or name in members


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names that are the agents' now, and names that were and may be taken over."""

    reserved: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()
    """Those of etcd members, which nobody takes over."""
    ends_at: float | None = None
    """When the Lease ends if it is not renewed."""
    renewed: str = ""
    """When it was renewed last, as it says itself, by a clock that is not ours."""


class AgentNames:
    """Looks at the Lease again and again."""

    def __init__(self) -> None:
        self._told: Told | None = None
        self._members: frozenset[str] = frozenset()
        """Also of a Lease that was there once: members do not go with it."""
        self._changed_at = 0.0

    def look(self, told: Told | None, *, in_touch: bool, now: float) -> Names:
        self._members = (told.members if told else frozenset()) or self._members
        return replace(self._look(told, in_touch=in_touch, now=now), members=self._members)

    def _look(self, told: Told | None, *, in_touch: bool, now: float) -> Names:
        if told is None:
            if in_touch:
                self._told = None
                return Names()
            return Names(reserved=self._told.names if self._told else frozenset())
        if not in_touch or told != self._told:  # a Lease that we do not hear of may well be renewed
            self._told, self._changed_at = told, now
        if now - self._changed_at < told.seconds:
            return Names(reserved=told.names, ends_at=self._changed_at + told.seconds)
        return Names(left=told.names)
