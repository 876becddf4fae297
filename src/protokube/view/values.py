"""The parts of a view of a cluster: hosts, disks, members and the reports of agents.

Every part may be absent: a host that is gone has no report, a member that does not answer has no state, and what only a
look at the local cloud sees is None in a view that was read from a store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from protokube.members.alarms import Alarm
from protokube.members.older_copy import Older
from protokube.members.start_values import Listed
from protokube.notes import Note

ROUNDS_EVERY = 10.0
"""Seconds between two rounds of an agent at the most, for a report that says nothing about the next one."""
MARGIN = 10.0
"""Seconds that a report may be late before nothing in it counts as current: a round takes time on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonView:
    """The local cloud itself."""

    alive: bool
    pid: int | None = None
    why: str = ""
    """What was seen of one that does not answer."""
    timed_out: bool = False
    """It did not answer in time, so it may well run."""
    stopped: bool = False
    """By `protokube stop`."""
    not_starting: Mapping[str, str] = field(default_factory=dict)
    """Why no host of a group starts, by the name of the group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideView:
    """Whether hosts reach the outside."""

    reached: bool
    isolated: bool | None = None
    """Whether that is configured; None if it never was."""
    why: str = ""
    """Why they do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposedView:
    """A port of this machine that leads to a Service."""

    address: str
    local_port: int
    namespace: str
    service: str
    port: str
    """Of the Service: its number or name; "" for the only one."""
    listening: bool
    why: str = ""
    """Why it is not open, or why the last connection was not served."""

    @property
    def here(self) -> str:
        return f"[{self.address}]:{self.local_port}" if ":" in self.address else f"{self.address}:{self.local_port}"

    @property
    def warning(self) -> str:
        """Empty if only this machine reaches it."""
        return "" if ip_address(self.address).is_loopback else f"whoever reaches {self.address} can connect"

    @property
    def target(self) -> str:
        return f"{self.namespace}/{self.service}" + (f":{self.port}" if self.port else "")

    @property
    def state(self) -> str:
        if not self.listening:
            return f"not open: {self.why or 'it is being opened'}"
        return f"open; the last connection failed: {self.why}" if self.why else "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """One host, running or not."""

    id: str
    name: str
    group: str
    address: str
    alive: bool
    """Its processes are there; in a view from a store, nothing says that they are not."""
    dead: bool = False
    """Declared dead by the cloud, for good."""
    since: float | None = None
    """When its first process began, in seconds since 1970."""
    pid: int | None = None
    master: bool = True
    """It runs an agent, whose reports are awaited."""
    peers: tuple[str, ...] | None = ()
    """Addresses at which it has a standing connection to a peer port of etcd; None where nobody looks."""
    state: str = ""
    """What is known of it, in words, where nobody sees its processes: `live`, `no live lease`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskView:
    """One volume: as the cloud lists it, and the phase its holder says it is in."""

    id: str
    member: str
    """`main/a`."""
    size: int
    attached_to: str | None
    mark: str
    epoch: int
    last_holder: str
    phase: str
    """A value of `members.phases.Phase`; "" while its holder says nothing."""
    state: str = ""
    """The change that its provider has not completed: `attaching`, `detaching` or `busy`; "" if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """One name of the fixed set, and what etcd itself answered there."""

    member: str
    """`main/a`."""
    name: str
    """As etcd says it: `etcd-a`."""
    dns_name: str
    volume: str | None
    host: str | None
    url: str | None = ""
    """Where this machine reaches it; None if it need not."""
    asked: bool = True
    """False if nobody could ask it, so that nothing is known of its health."""
    asked_by: str = ""
    """The master that asked it; "" where this machine did, or nobody."""
    age: float = 0.0
    """Seconds since that master published the answer."""
    healthy: bool = False
    """It knows a leader, reports no error, and answered behind a quorum."""
    why: str = ""
    """Why it is not healthy."""
    id: int = 0
    cluster_id: int = 0
    leader_id: int = 0
    raft_term: int = 0
    revision: int = 0
    learner: bool = False
    version: str = ""
    db_size: int = 0
    db_in_use: int = 0
    alarms: tuple[Alarm, ...] = ()
    """Of the whole etcd cluster: each member reports those of all."""
    listed: tuple[Listed, ...] = ()
    """The members as this one lists them, behind a quorum."""

    @property
    def key(self) -> str:
        return self.member.partition("/")[0]

    @property
    def leader(self) -> bool:
        return self.healthy and self.id == self.leader_id


@dataclass(frozen=True, slots=True, kw_only=True)
class MountedVolumeView:
    """A mounted volume, as its holder's agent reports it."""

    member: str
    volume: str
    epoch: int | None
    holder: str | None
    generation: str | None
    data: str
    doing: str
    """One word or two: founding, going on, joining, waiting, refused, undecided."""
    why: str
    """What it waits for, or why it is refused; else empty."""
    linked: bool
    older: Older | None = None
    """How its disk is behind what was recorded about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """The last report of one host's agent."""

    host: str
    at: float
    """When its round ended, in seconds since 1970 by its own clock, which may be wrong."""
    revision: int | None = None
    """The revision of the configuration that it runs."""
    round: int
    elected: bool
    age: float = 0.0
    """Seconds since the report was written, by the clock of the machine that looks."""
    next_within: float = ROUNDS_EVERY
    """Seconds after which it promised the next round."""
    took: float = 0.0
    """Seconds that its round took."""
    serving: bool | None = None
    """Whether its API server is ready; None where there is none to be."""
    did: tuple[Note, ...] = ()
    waits: tuple[Note, ...] = ()
    person: tuple[Note, ...] = ()
    bugs: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()
    mounted: tuple[MountedVolumeView, ...] = ()
    phases: Mapping[str, str] = field(default_factory=dict)
    """By volume, what this agent says of it."""

    @property
    def stale(self) -> bool:
        """The next report is overdue: what this one holds is the last that is known, and may be wrong by now."""
        return self.age > self.next_within + 2 * self.took + MARGIN
