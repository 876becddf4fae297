"""What a drill records, and what is concluded from it: values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from protokube.local.drill.writer import WriteLog
from protokube.local.view.cluster import ClusterView

DRILLS = {
    "kill-master": "kill the host that holds a member; its volume goes to a successor",
    "lose-volume": "delete the volume of a member; the others take a new one in",
    "partition": "pull the cable of a host for a while; the others go on",
    "pause-master": "freeze a host, declare it dead, and let it wake up beside its successor",
    "power-off": "kill every host at once; all of them come back with other names and addresses",
}


@dataclass(frozen=True, slots=True)
class Step:
    """Something that was done or seen, and when, in seconds since the first blow."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Milestone:
    """Something to wait for: says what it saw once it is so, and nothing before."""

    awaited: str
    reached: Callable[[ClusterView], str]
    kind: str = ""
    """A word by which the verdict finds it, where it has a limit in time."""
    last: bool = False
    """Believed only after all others: it was so before the blow, too."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A milestone with a limit, and when it was reached."""

    kind: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OldHolder:
    """What a holder did that woke up after its volume had been taken over."""

    host: str
    ran: bool
    """Its etcd was still there right before it woke up; otherwise nothing is proven."""
    attempts: int
    """Writes that were tried through its own etcd."""
    acknowledged: tuple[str, ...]
    """Keys that its etcd said were written."""
    landed: tuple[str, ...]
    """Keys of those attempts that are in the cluster afterwards."""
    gone_after: float | None
    """Seconds after waking up until none of its etcd processes was left; None if one still was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """What this kind of drill has to keep."""

    same_list: bool = True
    """The member list is the same afterwards, byte by byte."""
    same_homes: bool = False
    """Nobody takes anything over: volumes, holders and epochs stay."""
    taken_over: tuple[str, ...] = ()
    """Volumes that another host holds afterwards, with a greater epoch."""
    replaced: str | None = None
    """The member that comes back on a new volume, with a new id."""
    gone: tuple[str, ...] = ()
    """Hosts that do not come back; nor do their addresses."""
    longest_gap: float | None = None
    """Seconds without an acknowledged write; None where no quorum survives."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """By kind of milestone: the seconds within which it is reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Everything that was recorded."""

    drill: str
    target: str
    """In words: which host, member and volume."""
    key: str
    """The etcd cluster that was written to."""
    promises: Promises
    steps: tuple[Step, ...]
    reached: tuple[Reached, ...]
    missing: tuple[str, ...]
    """What was still waited for when the time was up."""
    began: float
    """When the first blow fell, on the clock of the writes."""
    before: ClusterView
    after: ClusterView
    log: WriteLog
    found: Mapping[str, str] | None
    """What was read back; None if that could not be done."""
    old: OldHolder | None = None
    api_log: WriteLog | None = None
    """Writes through the Kubernetes API, where there is one."""
    api_found: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiWrites:
    """What became of the writes through the Kubernetes API."""

    acknowledged: int
    unanswered: int
    there: int
    longest_gap: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What it comes to."""

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
    """Seconds after the first blow; less than 0 is before it."""
    same_list: bool
    replaced: str | None
    """The member that had to come back with a new id."""
    lists: tuple[bytes, bytes]
    """The member list, before and after, as bytes."""
    old: OldHolder | None = None
    api: ApiWrites | None = None

    @property
    def good(self) -> bool:
        return not self.broken and not self.missing
