"""The edges that a round acts through: one small Protocol for each kind of help, and the clock."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from protokube.agent.cache import Cache
from protokube.etcd import Etcd
from protokube.etcd.logs import MemberLogs
from protokube.host import Block, Disks, Routes, Units
from protokube.host.background import Background, Threads
from protokube.host.supervised import Workers
from protokube.members.agreement import Disagree
from protokube.members.raftmark import LogPosition
from protokube.providers.dns import DnsProvider
from protokube.providers.machines import Machine, MachineProvider
from protokube.providers.volumes import VolumeProvider
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

    def may_restart_api_server(self) -> bool:
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


class NoAgreementWatch:
    """Agreement where nothing is compared: with a single member, and before there are any."""

    def alarms(self) -> Mapping[str, Disagree]:
        return {}

    def suspected(self, _key: str) -> bool:
        return False

    def compared(self, _key: str) -> bool:
        return True


@dataclass(slots=True, kw_only=True)
class Edges:
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
    agreement: Agreement = field(default_factory=NoAgreementWatch)
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
    cache: Cache = field(default_factory=Cache)
    zone_mode: bool = True
    """Names are in a zone that others read; else each master keeps its own hosts file."""

    def inside(self, path: str | Path) -> Path:
        """A path of this machine."""
        return _below(self.root, str(path))


@lru_cache(maxsize=256)
def _below(root: Path, path: str) -> Path:
    """Kept: each round asks for the same few dozen paths."""
    return root / path.lstrip("/")
