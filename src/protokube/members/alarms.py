"""etcd's alarms as values: the kind of alarm, the member it is about, and what it means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum


class AlarmKind(Enum):
    """What etcd raises an alarm for."""

    NOSPACE = "NOSPACE"
    """A database reached its quota: etcd refuses every put and every new lease until the alarm is cleared."""
    CORRUPT = "CORRUPT"
    """A member's data differs from the others': etcd refuses every write."""
    UNKNOWN = "unknown"
    """An alarm that this version of protokube does not know, from a newer etcd."""


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


STATES = {AlarmKind.NOSPACE: "out of space", AlarmKind.CORRUPT: "corrupt", AlarmKind.UNKNOWN: "alarm"}
"""The state that `status` shows for a member of a cluster with this alarm."""
MEANINGS = {
    AlarmKind.NOSPACE: "a database reached its quota, so etcd takes no writes",
    AlarmKind.CORRUPT: "its data differs from the others', so etcd takes no writes",
    AlarmKind.UNKNOWN: "an alarm that is not known here",
}


def state(alarms: Iterable[Alarm]) -> str:
    """The state of a cluster with these alarms; empty without one."""
    kinds = {each.kind for each in alarms}
    worst = [kind for kind in (AlarmKind.CORRUPT, AlarmKind.UNKNOWN, AlarmKind.NOSPACE) if kind in kinds]
    return STATES[worst[0]] if worst else ""


def meaning(alarms: Iterable[Alarm], names: Mapping[int, str]) -> str:
    """Which alarms are raised and what that means; `names` are members by id."""
    lines = (f"{each.name} of {names.get(each.member) or f'{each.member:x}'}: {MEANINGS[each.kind]}" for each in alarms)
    return "; ".join(sorted(lines))
