"""etcd's alarms as values: what is wrong, with which member, and whether the agents may do something about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class AlarmKind(Enum):
    """What etcd raises an alarm for."""

    NOSPACE = "NOSPACE"
    """A database reached its quota: etcd refuses every put and every new lease until the alarm is cleared."""
    CORRUPT = "CORRUPT"
    """A member's data differs from the others': etcd refuses every write."""
    UNKNOWN = "unknown"
    """Raised by a later etcd than we know."""


@dataclass(frozen=True, slots=True, order=True)
class Alarm:
    """One alarm. etcd keeps it in the replicated state: every member reports the alarms of all."""

    member: int
    name: str
    """As etcd writes it: `NOSPACE`."""

    @property
    def kind(self) -> AlarmKind:
        known = {each.value: each for each in (AlarmKind.NOSPACE, AlarmKind.CORRUPT)}
        return known.get(self.name, AlarmKind.UNKNOWN)
