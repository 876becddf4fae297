"""The record of a drill and its verdict. Values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from protokube.local.drill.writer import WriteLog
from protokube.view.cluster import ClusterView

DRILLS = {
    "kill-master": "kill the host that holds a member; its volume goes to a successor",
    "lose-volume": "delete the volume of a member; the others take a new one in",
    "partition": "pull the cable of a host for a while; the others go on",
    "pause-master": "freeze a host, declare it dead, and let it wake up beside its successor",
    "power-off": "kill every host at once; all of them come back with other names and addresses",
}


@dataclass(frozen=True, slots=True)
class Step:
    """Something that was done or observed, in seconds since the first fault."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Milestone:
    """Something to wait for; `reached` returns a text once it is reached, and "" before."""

    awaited: str
    reached: Callable[[ClusterView], str]
    kind: str = ""
    """A key into `Promises.limits`, for milestones with a time limit."""
    last: bool = False
    """Checked only after all others, because it also held before the fault."""


@dataclass(frozen=True, slots=True)
class Reached:
    """When a milestone with a time limit was reached."""

    kind: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OldHolder:
    """What a host did that woke up after its volume had been taken over."""

    host: str
    ran: bool
    """Whether its etcd still ran right before it woke up; otherwise the drill proves nothing."""
    attempts: int
    """Writes attempted through its own etcd."""
    acknowledged: tuple[str, ...]
    """Keys that its etcd acknowledged."""
    landed: tuple[str, ...]
    """Attempted keys that exist in the cluster afterwards."""
    gone_after: float | None
    """Seconds from waking up until its etcd processes were gone; None if they were not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """The guarantees that a drill checks."""

    same_list: bool = True
    """The member list is the same afterwards, byte by byte."""
    same_homes: bool = False
    """No takeover: volumes, holders and epochs stay."""
    taken_over: tuple[str, ...] = ()
    """Volumes that another host must hold afterwards, with a higher epoch."""
    replaced: str | None = None
    """The member that must return on a new volume, with a new id."""
    gone: tuple[str, ...] = ()
    """Hosts whose names and addresses must not be reused."""
    longest_gap: float | None = None
    """The longest allowed time without an acknowledged write, in seconds; None where no quorum survives."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """By kind of milestone: the seconds within which it must be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Everything that was recorded."""

    drill: str
    target: str
    """For messages: host, member and volume."""
    key: str
    """The etcd cluster that was written to."""
    promises: Promises
    steps: tuple[Step, ...]
    reached: tuple[Reached, ...]
    missing: tuple[str, ...]
    """Milestones that were not reached before the timeout."""
    began: float
    """When the first fault was injected, on the clock of the writes."""
    before: ClusterView
    after: ClusterView
    log: WriteLog
    found: Mapping[str, str] | None
    """The keys and values that were read back; None if that failed."""
    old: OldHolder | None = None
    api_log: WriteLog | None = None
    """Writes through the Kubernetes API, where there is one."""
    api_found: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiWrites:
    """The results of the writes through the Kubernetes API."""

    acknowledged: int
    unanswered: int
    there: int
    longest_gap: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of a drill."""

    drill: str
    target: str
    broken: tuple[str, ...]
    missing: tuple[str, ...]
    steps: tuple[Step, ...]
    acknowledged: int
    unanswered: int
    there: int
    """Acknowledged writes that were read back."""
    longest_gap: float
    gap_began: float
    """Seconds after the first fault; negative if before it."""
    same_list: bool
    replaced: str | None
    """The member that had to return with a new id."""
    lists: tuple[bytes, bytes]
    """The member list, before and after, as bytes."""
    old: OldHolder | None = None
    api: ApiWrites | None = None
    lacks: tuple[str, ...] = ()
    """If something did not happen in time: why the cluster is not ready."""

    @property
    def good(self) -> bool:
        return not self.broken and not self.missing
