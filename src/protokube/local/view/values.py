"""What one look at a local cluster saw, as values.

Every part may be absent: a host that is gone has no report, a member that does not answer has no state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from protokube.agent.report import Note
from protokube.members.alarms import Alarm
from protokube.members.generation import Generation
from protokube.members.lostquorum import quorum_of
from protokube.members.older import Older
from protokube.members.start import Listed
from protokube.records import Record

LASTED = re.compile(r" \(for (\d+) s\)$")
"""How an agent says since when it waits."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideView:
    """Whether hosts reach the outside."""

    reached: bool
    isolated: bool | None = None
    """Whether they are not meant to; None if nobody ever said."""
    why: str = ""
    """Why they do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """One host, running or not."""

    id: str
    name: str
    group: str
    address: str
    alive: bool
    """Its processes are there."""
    dead: bool = False
    """Declared dead by the cloud, for good."""
    since: float | None = None
    """When its first process began, in seconds since 1970."""
    pid: int | None = None
    master: bool = True
    """It runs an agent, whose reports are awaited."""
    peers: tuple[str, ...] = ()
    """Addresses at which it has a standing connection to a peer port of etcd."""


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
    url: str = ""
    """Where this machine reaches it."""
    asked: bool = True
    """False if nobody could ask it, so that nothing is known of its health."""
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
class HomeView:
    """A mounted volume, as its holder's agent reports it."""

    member: str
    volume: str
    epoch: int | None
    holder: str | None
    generation: str | None
    data: str
    doing: str
    linked: bool
    older: Older | None = None
    """How its disk is behind what was recorded about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """The last report of one host's agent."""

    host: str
    at: float
    """When its round ended, in seconds since 1970 by its own clock, which may be wrong."""
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
    homes: tuple[HomeView, ...] = ()
    phases: Mapping[str, str] = field(default_factory=dict)
    """By volume, what this agent says of it."""

    @property
    def stale(self) -> bool:
        """The next report is overdue: what this one holds is the last that is known, and may be wrong by now."""
        return self.age > self.next_within + 2 * self.took + MARGIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Something an agent says, and who says it."""

    host: str
    """"" for what was seen from outside."""
    note: Note
    seconds: float = 0.0
    """How long it has been so."""
    stale: bool = False
    """It is from a report whose successor is overdue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """Everything one look saw."""

    cluster: str
    at: float
    daemon: DaemonView
    outside: OutsideView | None = None
    """None where the local cloud says nothing of it."""
    hosts: tuple[HostView, ...] = ()
    disks: tuple[DiskView, ...] = ()
    members: tuple[MemberView, ...] = ()
    records: tuple[Record, ...] = ()
    generations: Mapping[str, Generation | None] = field(default_factory=dict)
    """By etcd cluster; None is a record that is missing or cannot be read in full."""
    agents: tuple[AgentView, ...] = ()
    api_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be seen, and why."""

    @property
    def ready(self) -> bool:
        return not self.lacks

    @property
    def lacks(self) -> tuple[str, ...]:
        """Why the cluster is not ready, in the order in which things come up; empty if it is."""
        from protokube.local.view.ready import lacks  # which knows this class

        return tuple(lacks(self))

    @property
    def waits(self) -> tuple[Told, ...]:
        """What a later round may see through, each with the time it has lasted by now."""
        return tuple(_waiting(each, note) for each in self._speaking() for note in each.waits)

    @property
    def person(self) -> tuple[Told, ...]:
        """What no later round mends by itself: as seen from outside, and as the agents say."""
        from protokube.local.view.needs import needs  # which knows this class

        seen = tuple(needs(self))
        known = {each.note.text for each in seen}  # agents report the same in the same words, each for itself
        notes = [_told(each, note) for each in self._speaking() for note in each.person]
        return (*seen, *(each for each in notes if each.note.text not in known))

    @property
    def contradictions(self) -> tuple[str, ...]:
        """What was reported and cannot all be true."""
        from protokube.local.view.contradictions import contradictions  # which knows this class

        return tuple(each.text for each in contradictions(self))

    @property
    def bugs(self) -> tuple[Told, ...]:
        return tuple(_told(each, note) for each in self._speaking() for note in each.bugs)

    @property
    def warnings(self) -> tuple[Told, ...]:
        """What will need a person one day; several masters may say the same."""
        return tuple(_told(each, note) for each in self._speaking() for note in each.warnings)

    def report(self, host: str | None) -> AgentView | None:
        """The last report of a host's agent, of whatever age."""
        return next((each for each in self.agents if each.host == host), None)

    def current(self, host: str | None) -> AgentView | None:
        """The report of a host's agent, if it can be taken for how things are now."""
        report, there = self.report(host), self.host(host)
        return report if report and there and there.alive and not there.dead and not report.stale else None

    @property
    def claim_election(self) -> tuple[str, ...]:
        """Hosts whose current report says that they are elected; more than one cannot be right."""
        return tuple(each.host for each in self.agents if each.elected and self.current(each.host))

    @property
    def elected(self) -> str | None:
        """The elected master, if exactly one says so now."""
        claims = self.claim_election
        return claims[0] if len(claims) == 1 else None

    def answering(self, key: str) -> int:
        """Voters of one etcd cluster that answered behind a quorum."""
        return sum(each.healthy and not each.learner for each in self.members if each.key == key)

    def needed(self, key: str) -> int:
        """Voters of one etcd cluster that a quorum takes."""
        return quorum_of(sum(each.key == key for each in self.members))

    def has_quorum(self, key: str) -> bool:
        return 0 < self.needed(key) <= self.answering(key)

    def host(self, name: str | None) -> HostView | None:
        return next((each for each in self.hosts if each.name == name), None)

    def disk(self, volume: str | None) -> DiskView | None:
        return next((each for each in self.disks if each.id == volume), None)

    def member(self, member: str) -> MemberView | None:
        return next((each for each in self.members if member == each.member), None)

    def addresses(self, name: str) -> tuple[str, ...]:
        return tuple(value for each in self.records if (each.name, each.type) == (name, "A") for value in each.values)

    def listed(self, key: str) -> tuple[Listed, ...]:
        """The members of one etcd cluster, as a quorum lists them."""
        lists = (each.listed for each in self.members if each.key == key and (each.healthy or each.alarms))
        return next(filter(None, lists), ())

    @property
    def not_serving(self) -> tuple[str, ...]:
        """Hosts whose API server should be ready and is not."""
        return tuple(each.host for each in self._speaking() if each.serving is False)

    def _speaking(self) -> Iterator[AgentView]:
        """A host that is gone says nothing any more, whatever its last report was."""
        return (each for each in self.agents if (host := self.host(each.host)) and host.alive and not host.dead)


def _told(agent: AgentView, note: Note) -> Told:
    return Told(host=agent.host, note=note, stale=agent.stale)


def _waiting(agent: AgentView, note: Note) -> Told:
    lasted = LASTED.search(note.text)
    seconds = (int(lasted[1]) if lasted else 0) + agent.age
    return replace(_told(agent, replace(note, text=LASTED.sub("", note.text))), seconds=seconds)
