"""The edges that a round acts through: one small Protocol for each kind of I/O, and the clock."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from protokube.agent.cache import Cache
from protokube.agent.maintenance import Maintenance
from protokube.etcd import Etcd
from protokube.etcd.logs import MemberLogs
from protokube.host import Block, Disks, Routes, Units
from protokube.host.background import Background, Threads
from protokube.host.probe import probe
from protokube.host.running import HostProcesses, Processes
from protokube.host.supervised import Workers
from protokube.members.agreement import Disagree
from protokube.members.raftmark import LogPosition
from protokube.providers.dns import DnsProvider
from protokube.providers.machines import Machine, MachineProvider
from protokube.providers.volumes import VolumeProvider
from protokube.store import Store


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970: for certificates and for people, never for waiting."""

    def monotonic(self) -> float:
        """Seconds that never jump: for everything that waits."""


class Keys(Protocol):
    """Certificates of this machine."""

    def sync(self, names: Sequence[str]) -> Sequence[str]:
        """Issue or renew these certificates, by their names in the configuration; returns what was issued and why."""

    def sync_shared(self) -> Sequence[str]:
        """Write the shared keys: the cluster's authority and the service accounts' key; returns what was written."""

    def give(self, component: str, names: Sequence[str]) -> Sequence[str]:
        """Copy these files to the component's own folder; returns what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterRevision:
    """The revision that a live master runs."""

    name: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterAddresses:
    """Where a live master is reached."""

    internal: str
    """By the machines of the cluster."""
    external: str
    """By clients outside of the network; the internal address if the master has no external one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasesRead:
    """When the leases were read, by the only clock that all masters share: the revision of their etcd cluster."""

    cluster_id: int
    revision: int


class Presence(Protocol):
    """Live masters, by leases in etcd; renewed by a background thread."""

    def live(self) -> Mapping[str, str] | None:
        """Internal address by machine id, of masters with a live lease; None without a fresh answer from a quorum."""

    def read_at(self) -> LeasesRead | None:
        """At which revision that was read."""

    def addresses(self) -> Mapping[str, MasterAddresses] | None:
        """The same masters with both of their addresses, in one consistent answer."""

    def serving(self) -> Collection[str] | None:
        """Of those, the machines whose API server is ready."""

    def elected(self) -> bool:
        """Whether this master is the elected one, which writes shared state. False whenever that is not certain."""

    def may_restart_api_server(self) -> bool:
        """Whether to restart our API server once, now: no other master restarts its own at the same time."""

    def revisions(self) -> Sequence[MasterRevision] | None:
        """The revision of every master with a live lease; None without a fresh answer from a quorum."""

    def rollout_hint(self) -> str | None:
        """Changes whenever an operator announces a new revision; None without a fresh answer from a quorum."""

    def retire(self) -> None:
        """Give up the lease for good: this master no longer counts as live."""


class Agreement(Protocol):
    """Whether the members hold the same data; compared by a background thread."""

    def alarms(self) -> Mapping[str, Disagree]:
        """By etcd cluster, the proven differences."""

    def suspected(self, key: str, /) -> bool:
        """Whether the last comparison that could be made of this etcd cluster found a difference."""

    def compared(self, key: str, /) -> bool:
        """Whether this etcd cluster was compared recently; without that, the absence of a difference means nothing."""


class Logs(Protocol):
    """etcd's logs on mounted volumes. Raises UnreadableLog, or OSError."""

    def position(self, folder: Path) -> LogPosition:
        """The position at the end of the log in this folder."""

    def flushed(self, folder: Path) -> LogPosition:
        """The same, after an fsync of the log up to there; a slow disk makes this slow."""


class Kube(Protocol):
    """The API server of this very machine: objects as plain trees, by their paths.

    TryLater if it does not answer, or on a conflict with another writer; ApiError if it refuses.
    """

    def get(self, path: str, **query: str) -> dict[str, Any]: ...

    def create(self, path: str, tree: dict[str, Any]) -> dict[str, Any]: ...

    def apply(self, path: str, tree: dict[str, Any], *, manager: str) -> dict[str, Any]: ...

    def merge(self, path: str, tree: dict[str, Any]) -> dict[str, Any]: ...

    def delete(self, path: str, *, uid: str = "") -> dict[str, Any]: ...


class NoAgreementWatch:
    """Agreement where nothing is compared: with a single member, or with none yet."""

    def alarms(self) -> Mapping[str, Disagree]:
        return {}

    def suspected(self, _key: str) -> bool:
        return False

    def compared(self, _key: str) -> bool:
        return True


@dataclass(slots=True, kw_only=True)
class Edges:
    """Everything that a round acts through."""

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
    """`/`, or another directory in tests."""
    uuid_of: Callable[[Block], str | None]
    """The UUID in the superblock of an ext4, mounted or not."""
    new_nonce: Callable[[], str]
    agreement: Agreement = field(default_factory=NoAgreementWatch)
    logs: Logs = field(default_factory=MemberLogs)
    background: Background = field(default_factory=Threads)
    processes: Processes = field(default_factory=HostProcesses)
    probe: Callable[[Mapping[str, Any]], str] = probe
    """Run a liveness probe; "" if it succeeds, else the reason."""
    workers: Workers = field(default_factory=Workers)
    """Threads that live as long as the agent."""
    space: Maintenance | None = None
    """Watches the members held here for alarms, in a background thread; None where nothing watches them."""
    routes: Routes | None = None
    """This machine's routes; None where something else provides the pod network."""
    kube: Kube | None = None
    """None where there is no Kubernetes."""
    unpublished: Callable[[], str] = lambda: ""
    """Why the status of this master is not in the state store; "" if it is."""
    launched: int = 0
    """The number of the revision in the launch data of this machine."""
    end_machine: Callable[[], None] | None = None
    """Shut this machine down; None where nothing makes another one in its place."""
    cache: Cache = field(default_factory=Cache)
    zone_mode: bool = True
    """Names are published in a DNS zone; otherwise each master writes its own hosts file."""

    def inside(self, path: str | Path) -> Path:
        """A path of this machine."""
        return _below(self.root, str(path))


@lru_cache(maxsize=256)
def _below(root: Path, path: str) -> Path:
    """Cached: each round uses the same few dozen paths."""
    return root / path.lstrip("/")
