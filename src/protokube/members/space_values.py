"""What is known of an etcd cluster that raised an alarm, and the steps that can follow (`members.space`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from protokube.members.alarms import Alarm
from protokube.members.remedy import Remedy
from protokube.members.start_values import Listed

DEFAULT_QUOTA = 2 * 2**30
"""etcd's default, where `quota-backend-bytes` is 0."""


def in_force(configured: int) -> float:
    """The quota in bytes that `quota-backend-bytes` means to etcd."""
    return float("inf") if configured < 0 else configured or DEFAULT_QUOTA


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One member's status reply."""

    leader: int
    term: int
    applied: int
    size: int
    in_use: int
    version: str
    learner: bool


@dataclass(frozen=True, slots=True)
class Sample:
    """A revision, and how many seconds ago it was the newest."""

    age: float
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """One etcd cluster, as one master sees it."""

    members: tuple[Listed, ...]
    """As a quorum lists them."""
    readings: Mapping[int, Reading]
    """By member id; a member that did not answer is missing."""
    alarms: tuple[Alarm, ...]
    quotas: Mapping[int, int]
    """By member id: `quota-backend-bytes` as configured; 0 is etcd's default, negative is none."""
    own: int
    """The member that this master holds."""
    own_free: int
    """Free bytes of the file system it lies on."""
    may_compact: bool
    samples: tuple[Sample, ...]
    record: Remedy | None
    now: float
    """Seconds since 1970."""

    @property
    def leader(self) -> int:
        """The member that all members that answered follow; 0 if they disagree."""
        led = {each.leader for each in self.readings.values()}
        (leader,) = led if len(led) == 1 else {0}
        return leader

    @property
    def directs(self) -> bool:
        """Whether this master acts for the whole cluster: it holds the leader, and there is one leader only."""
        return self.own == self.leader

    def quota(self, member: int) -> float:
        return in_force(self.quotas.get(member, 0))

    def name(self, member: int) -> str:
        return next((each.name for each in self.members if each.id == member and each.name), f"{member:x}")


@dataclass(frozen=True, slots=True)
class Nothing:
    """No alarm is raised."""


@dataclass(frozen=True, slots=True)
class Compact:
    """Compact up to a revision: delete older versions of keys."""

    revision: int
    before: Remedy
    """The record to write before acting."""
    after: Remedy
    """The record to write after success."""


@dataclass(frozen=True, slots=True)
class Defragment:
    """Defragment one member, which is on this master."""

    member: int
    before: Remedy
    after: Remedy


@dataclass(frozen=True, slots=True)
class MoveLeader:
    """Transfer the leadership away from our member, so that it can be defragmented."""

    member: int
    target: int
    before: Remedy


@dataclass(frozen=True, slots=True)
class Disarm:
    """Clear the alarms: every database has room again."""

    alarms: tuple[Alarm, ...]
    before: Remedy | None
    """The record of the remedy, marked as ended; None if there was no remedy of ours."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A later round, or another master, continues."""

    why: str


@dataclass(frozen=True, slots=True)
class NeedsPerson:
    """Change nothing; a person has to act."""

    why: str
    hint: str
    mine: bool = False
    """The cause is this master's own volume, so only this master reports it."""


Decision = Nothing | Compact | Defragment | MoveLeader | Disarm | Wait | NeedsPerson
