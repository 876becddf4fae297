"""Maintenance of the etcd members on this master, as rounds see it: observed alarms, and the jobs that clear them.

`agent.etcd.spacewatch` implements it with background threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from protokube.errors import ProtokubeError
from protokube.etcd import Alarm, MaintainedEtcd, Status
from protokube.members.prefix_sizes import Share
from protokube.members.remedy import Remedy
from protokube.members.space_values import Sample
from protokube.members.start_values import Listed


@dataclass(frozen=True, slots=True)
class Own:
    """The member of one etcd cluster that this master holds."""

    name: str
    point: Path
    """Where its volume is mounted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One observation of an etcd cluster. Without an alarm, only the own member was queried."""

    when: float
    own: Status
    members: tuple[Listed, ...] = ()
    statuses: Mapping[int, Status] = field(default_factory=dict)
    alarms: tuple[Alarm, ...] = ()
    free: int = 0
    """Bytes free on the file system of the own member."""


@dataclass(slots=True)
class Job:
    """A maintenance job that runs in a background thread."""

    what: str
    """`defragmenting etcd-b`."""
    done: str
    """`defragmented etcd-b`."""
    before: Remedy | None
    after: Remedy | None
    """The record to write over `before` once it has succeeded."""
    ended: bool = False
    succeeded: bool = False
    error: ProtokubeError | None = None


class Maintenance(Protocol):
    """Observes the members that this master serves, and runs one job at a time for each etcd cluster."""

    @property
    def etcd(self) -> Mapping[str, MaintainedEtcd]: ...

    def hold(self, own: Mapping[str, Own]) -> None:
        """Set the members that this master serves now, by etcd cluster."""

    def sight(self, key: str) -> Sight | None:
        """The last observation, if it is fresh."""

    def look_again(self, key: str) -> None:
        """Query the members soon."""

    def samples(self, key: str) -> tuple[Sample, ...]:
        """Recent revisions, each with its age."""

    def shares(self, key: str) -> tuple[Share, ...]:
        """The prefixes that fill it, the largest first; empty while that is not known."""

    def start(self, key: str, job: Job, work: Callable[[], None]) -> None:
        """Run `work` in the background as this job."""

    def job(self, key: str) -> Job | None:
        """The job that runs, or whose result was not collected yet."""

    def collected(self, key: str) -> None:
        """Drop a job that has ended, once its result was recorded."""
