"""What one look at a cluster saw, and the questions that its parts answer by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from protokube.launch.rollout import Rollout
from protokube.members.generation import Generation
from protokube.members.lostquorum import quorum_of
from protokube.members.start_values import Listed
from protokube.notes import Note
from protokube.records import Record
from protokube.view.values import AgentView, DaemonView, DiskView, ExposedView, HostView, MemberView, OutsideView


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentNote:
    """A note of an agent's report, and the host it comes from."""

    host: str
    """"" for what was observed from outside."""
    note: Note
    seconds: float = 0.0
    """How long it has been so."""
    stale: bool = False
    """It is from a report whose successor is overdue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCluster:
    """Everything one look saw, before anything is concluded from it."""

    cluster: str
    at: float
    daemon: DaemonView | None = None
    """None where there is no local cloud."""
    source: str = ""
    """The store that it was read from; "" for a look at the cluster itself."""
    outside: OutsideView | None = None
    """None where the local cloud says nothing of it."""
    exposed: tuple[ExposedView, ...] = ()
    """Ports of this machine that lead to Services."""
    hosts: tuple[HostView, ...] = ()
    disks: tuple[DiskView, ...] = ()
    members: tuple[MemberView, ...] = ()
    records: tuple[Record, ...] = ()
    generations: Mapping[str, Generation | None] = field(default_factory=dict)
    """By etcd cluster; None is a record that is missing or cannot be read in full."""
    unread: frozenset[str] = frozenset()
    """Etcd clusters whose record the store did not give: nothing is known of it."""
    volumes_known: bool = True
    """Whether anybody has a complete list of the volumes: without one, the absence of a volume means nothing."""
    agents: tuple[AgentView, ...] = ()
    rollout: Rollout | None = None
    """Which revision the masters should run; None without a record."""
    api_names: tuple[str, ...] = ()
    known_names: frozenset[str] | None = None
    """DNS names of which something is known, whether they have an address or not; None: of all."""
    notes: tuple[str, ...] = ()
    """What could not be seen, and why."""

    @property
    def waits(self) -> tuple[AgentNote, ...]:
        """What a later round may see through, each with the time it has lasted by now."""
        return tuple(_waiting(each, note) for each in self._speaking() for note in each.waits)

    @property
    def reported_needs(self) -> tuple[AgentNote, ...]:
        """What needs a person, as the agents report it."""
        return tuple(_note(each, note) for each in self._speaking() for note in each.person)

    @property
    def bugs(self) -> tuple[AgentNote, ...]:
        return tuple(_note(each, note) for each in self._speaking() for note in each.bugs)

    @property
    def warnings(self) -> tuple[AgentNote, ...]:
        """What will need a person one day; several masters may say the same."""
        return tuple(_note(each, note) for each in self._speaking() for note in each.warnings)

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

    def knows(self, name: str) -> bool:
        """Whether anything is known of this DNS name: without that, the absence of an address means nothing."""
        return self.known_names is None or name in self.known_names

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


def _note(agent: AgentView, note: Note) -> AgentNote:
    return AgentNote(host=agent.host, note=note, stale=agent.stale)


def _waiting(agent: AgentView, note: Note) -> AgentNote:
    lasted = 0.0 if note.since is None else max(agent.at - note.since, 0.0)  # both by the agent's clock
    return replace(_note(agent, replace(note, since=None)), seconds=lasted + agent.age)
