"""The edges a round acts through, and what it has seen so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from protokube.agent.cache import Memory
from protokube.agent.report import Report
from protokube.agent.wanted import EtcdCluster, MasterConfig, Member
from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.etcd import Etcd
from protokube.etcd.logs import MemberLogs
from protokube.host import Block, Disks, Mount, Routes, Units
from protokube.host.background import Background, Threads
from protokube.host.supervised import Workers
from protokube.members.agreement import Disagree
from protokube.members.diskfaults import FaultRecord
from protokube.members.generation import Generation
from protokube.members.identity import Identity, Unreadable
from protokube.members.lastwords import LastWords
from protokube.members.older import Older
from protokube.members.raftmark import LogPosition
from protokube.members.start import Data, Decision
from protokube.providers.dns import DnsProvider
from protokube.providers.machines import Machine, MachineProvider
from protokube.providers.volumes import Volume, VolumeProvider
from protokube.store import Store

if TYPE_CHECKING:
    from protokube.agent.etcd.spacewatch import SpaceWatch


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970: for certificates and for people, never for waiting."""

    def monotonic(self) -> float:
        """Seconds that never jump: for everything that waits."""


class Keys(Protocol):
    """Certificates of this machine."""

    def sync(self, names: Sequence[str]) -> Sequence[str]:
        """Have these ready, by their names in the configuration; say what was issued and why."""

    def sync_shared(self) -> Sequence[str]:
        """Have what all masters share: the cluster's authority and the service accounts' key; say what was written."""

    def give(self, component: str, names: Sequence[str]) -> Sequence[str]:
        """Have these files also in the component's own folder; say what was written."""


class Presence(Protocol):
    """Who is alive, by leases in etcd; kept up beside the rounds."""

    def live(self) -> Mapping[str, str] | None:
        """Address by machine id, of every master with a live lease; None without a fresh answer from a quorum."""

    def serving(self) -> Collection[str] | None:
        """Of those, the machines whose API server is ready."""

    def elected(self) -> bool:
        """Whether this master is the one that writes what all share. False whenever that is not certain."""

    def leave(self) -> bool:
        """Whether to take our API server away now, for one absence: nobody else's is away on purpose."""

    def retire(self) -> None:
        """Be gone from the list of the living, and never come back."""


class Agreement(Protocol):
    """Whether the members hold the same data; asked beside the rounds."""

    def alarms(self) -> Mapping[str, Disagree]:
        """By etcd cluster, where they certainly do not."""

    def suspected(self, key: str, /) -> bool:
        """Whether the last comparison that could be made of this etcd cluster found a difference."""

    def compared(self, key: str, /) -> bool:
        """Whether this etcd cluster was compared a short while ago; without that, no difference means nothing."""


class Logs(Protocol):
    """etcd's logs on mounted volumes. Raises UnreadableLog, or OSError."""

    def position(self, folder: Path) -> LogPosition:
        """How far the log in this folder has come."""

    def flushed(self, folder: Path) -> LogPosition:
        """The same, once everything up to there is certainly on the disk; that may take as long as the disk takes."""


class Kube(Protocol):
    """The API server of this very machine: objects as plain trees, by their paths.

    TryLater if it does not answer, or if somebody else changed the object meanwhile; ApiError if it says no.
    """

    def get(self, path: str, **query: str) -> dict[str, Any]: ...

    def create(self, path: str, tree: dict[str, Any]) -> dict[str, Any]: ...

    def apply(self, path: str, tree: dict[str, Any], *, manager: str) -> dict[str, Any]: ...

    def merge(self, path: str, tree: dict[str, Any]) -> dict[str, Any]: ...

    def delete(self, path: str, *, uid: str = "") -> dict[str, Any]: ...


class NobodyLooks:
    """Agreement where nothing is compared: with a single member, and before there are any."""

    def alarms(self) -> Mapping[str, Disagree]:
        return {}

    def suspected(self, _key: str) -> bool:
        return False

    def compared(self, _key: str) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A volume that is mounted on this machine, and what is on it."""

    volume: str
    etcd: EtcdCluster
    member: Member
    point: Path
    """Where it is mounted, as this process sees it."""
    listed: Volume | None
    """As the provider just listed it; None if it did not answer."""
    identity: Identity | Unreadable | None
    data: Data
    empty: bool
    """Nothing at all on it yet, but what mkfs makes."""
    uuid: str | None
    verified: bool = False
    """This mount was checked, and its epoch raised: `agent.verified`."""
    mount: Mount | None = None

    @property
    def name(self) -> str:
        return f"{self.etcd.key}/{self.member.short}"


@dataclass(slots=True, kw_only=True)
class World:
    """Everything outside of the decisions."""

    me: Machine
    clock: Clock
    volumes: VolumeProvider
    machines: MachineProvider
    dns: DnsProvider | None
    disks: Disks
    units: Units
    store: Store
    etcd: Mapping[str, Etcd]
    keys: Keys
    presence: Presence
    root: Path
    """`/`, or what stands for it in a test."""
    uuid_of: Callable[[Block], str | None]
    """The UUID in the superblock of an ext4, mounted or not."""
    new_nonce: Callable[[], str]
    agreement: Agreement = field(default_factory=NobodyLooks)
    logs: Logs = field(default_factory=MemberLogs)
    background: Background = field(default_factory=Threads)
    workers: Workers = field(default_factory=Workers)
    """Threads that live as long as the agent."""
    space: SpaceWatch | None = None
    """Alarms of the members held here, watched beside the rounds; None where nobody watches."""
    routes: Routes | None = None
    """This machine's; nothing where others see to the network of pods."""
    kube: Kube | None = None
    """None where there is no Kubernetes."""
    memory: Memory = field(default_factory=Memory)
    zone_mode: bool = True
    """Names are in a zone that others read; else each master keeps its own hosts file."""

    def inside(self, path: str | Path) -> Path:
        """A path of this machine."""
        return _below(self.root, str(path))


@lru_cache(maxsize=256)
def _below(root: Path, path: str) -> Path:
    """Kept: each round asks for the same few dozen paths."""
    return root / path.lstrip("/")


@dataclass(slots=True, kw_only=True)
class Turn:
    """One round: filled step by step, thrown away at its end."""

    world: World
    wanted: MasterConfig
    report: Report
    volumes: Sequence[Volume] | None = None
    """The complete list; None if the provider did not answer this round."""
    gone: set[str] = field(default_factory=set)
    """Volumes that are mounted here or named by the record, and that do not exist, as the provider said."""
    unclear: dict[str, str] = field(default_factory=dict)
    """Such volumes of which the provider said neither, and why."""
    kept: dict[str, str] = field(default_factory=dict)
    """By etcd cluster, the one attached volume of it that this machine may serve."""
    unused: dict[str, str] | None = None
    """Volumes that are nobody's home, with the reason; None until it was found out in this round."""
    homes: list[Home] = field(default_factory=list)
    decisions: dict[str, Decision] = field(default_factory=dict)
    """By volume: what may be done with etcd on it."""
    older: dict[str, Older] = field(default_factory=dict)
    """By volume: how its disk is behind what was recorded about it."""
    named: set[str] = field(default_factory=set)
    """DNS names that the authoritative side answers with our address."""
    generations: dict[str, Generation | None] = field(default_factory=dict)
    unread: dict[str, ProtokubeError] = field(default_factory=dict)
    """Etcd clusters whose record the store did not give in this round, and why."""
    disk_errors: dict[str, str] = field(default_factory=dict)
    """By volume: what its disk answered when its identity was read."""
    disk_faults: dict[str, FaultRecord | None] = field(default_factory=dict)
    """By volume: how often its file system broke lately; None if the store did not say it."""
    last_words: dict[str, Sequence[LastWords]] = field(default_factory=dict)
    """By pod: with which words etcd ended, as its output had them when it was first looked at in this round."""
    leaving: dict[str, str] = field(default_factory=dict)
    """Volumes that the fence is taking away, with their etcd cluster; "" where nobody can tell."""
    asked: set[str] = field(default_factory=set)
    """What was waited for in this round."""
    settled: set[str] = field(default_factory=set)
    """Volumes whose identity, epoch and mark say, on the disk and at the provider, that we serve them."""
    next_within: float = math.inf
    """Seconds after which the next round has to be there, if nothing else asks for one sooner."""

    def waiting(self, step: str, about: str, why: str) -> None:
        """Note a wait together with how long it has lasted."""
        seconds = self.waited(f"{step} {about}")
        lasting = f" (for {seconds:.0f} s)" if seconds >= 1 else ""
        self.report.waiting(step, f"{why}{lasting}", about)

    @contextmanager
    def reported(self, step: str, about: str) -> Iterator[None]:
        """Report what becomes of one volume or member about that one: the step then goes on with the others."""
        try:
            yield
        except TryLater as why:
            self.waiting(step, about, why.message)
        except Refused as why:
            self.report.needs_a_person(step, why, about)
        except OSError as why:  # a file of this machine cannot be read or written
            self.waiting(step, about, f"{(why.strerror or str(why)).lower()}: {why.filename or 'unknown file'}")

    def within(self, seconds: float) -> None:
        """Have the next round at the latest then."""
        self.next_within = min(self.next_within, seconds)

    def waited(self, what: str) -> float:
        """Seconds since this was first waited for; a round that does not ask starts the count anew."""
        self.asked.add(what)
        return self.world.memory.waited(what, self.world.clock.monotonic())

    def forget(self) -> None:
        """At the end of a round: what is no longer waited for has no beginning either."""
        since = self.world.memory.since
        for what in since.keys() - self.asked:
            del since[what]

    def volume(self, id: str) -> Volume | None:  # noqa: A002
        return next((each for each in self.volumes or () if each.id == id), None)


Step = Callable[[Turn], None]

__all__ = ["Clock", "Home", "Keys", "Presence", "Refused", "Step", "TryLater", "Turn", "World"]
