"""One machine of a scenario: a root of its own, and everything that goes down with it."""

from __future__ import annotations

import json
import resource
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol

from clusters.scenario.disks import MemoryDisks
from clusters.scenario.edges import Fuse, HostClock, MemoryKeys, MemoryUnits, ShakyDns
from clusters.scenario.etcd import read_yaml
from protokube.agent.edges import Edges
from protokube.agent.etcd.presence import LeasePresence
from protokube.agent.loop import Loop
from protokube.agent.publish import Publisher
from protokube.agent.round import Round
from protokube.config.complete import complete
from protokube.errors import TryLater
from protokube.launch.derive import from_config
from protokube.launch.machine import MasterConfig
from protokube.providers.machines import Machine
from protokube.records.hostsfile import parse_hosts
from protokube.spec.parse import parse

SPEC = """
apiVersion: protokube.io/v1alpha1
kind: Cluster
metadata: {name: laptop}
spec:
  cloud: local
  etcdClusters: [%s]
"""
GENERATION = "g1"


@cache
def wanted_of(clusters: str = "main", rejoin_after: str = "") -> MasterConfig:
    """Three masters on one machine, with these etcd clusters; `rejoin_after` is for members removed by hand."""
    maintenance = f", maintenance: {{rejoinRemovedAfter: {rejoin_after}}}" if rejoin_after else ""
    clusters_text = ", ".join(f"{{name: {key}{maintenance}}}" for key in clusters.split())
    return from_config(complete(parse([("spec.yaml", SPEC % clusters_text)])), kubernetes=False)


@lru_cache
def hosts_of(text: str) -> dict[str, str]:
    """Addresses by name, as a hosts file has them."""
    return {each.name: each.values[0] for each in parse_hosts(text) if each.type == "A"}


@contextmanager
def tmpfs() -> Iterator[Path]:
    """A folder where a flush costs nothing; gone afterwards."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="protokube-", dir=shared if shared.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def noted() -> Iterator[None]:
    yield


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can grow while this lasts; the nearest to a full disk that needs no root."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def unlimited() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class Surroundings(Protocol):
    """What a machine sees of the stage that it stands on."""

    wanted: MasterConfig
    hosts_mode: bool
    dns: ShakyDns

    def holder(self, volume: str) -> str | None: ...


@dataclass
class Host:
    """One machine: its own root, and the agent that runs on it. It is what the model of etcd calls a machine."""

    stage: Surroundings
    machine: Machine
    root: Path
    clock: HostClock
    disks: MemoryDisks
    units: MemoryUnits
    keys: MemoryKeys
    fuse: Fuse
    edges: Edges
    loop: Loop
    presence: LeasePresence
    publisher: Publisher
    wanted: MasterConfig
    """What its agent runs with: the revision on its own disk."""
    launched: MasterConfig | None = None
    """Its launch data; None for those of the stage."""
    alive: bool = True
    frozen: bool = False
    disk_full: bool = False
    in_round: bool = False
    """Its agent is in the middle of a round: it cannot begin another one."""
    began: deque[float] = field(default_factory=lambda: deque(maxlen=400))
    """When its last rounds began that came at the agent's own pace."""
    due: float = 0.0
    beat_due: float = 0.0
    beside: list[Callable[[], None]] = field(default_factory=list)
    """Work for threads of the agent's own: each is done at its next beat."""
    round_: Round | None = None
    """The last round that came to its end."""

    @property
    def id(self) -> str:
        return self.machine.id

    @property
    def address(self) -> str:
        return self.machine.address

    @property
    def runs(self) -> bool:
        return self.alive and not self.frozen

    @property
    def kubelet_started(self) -> bool:
        return "kubelet.service" in self.units.started

    def has_keys(self, names: Iterable[str]) -> bool:
        return set(names) <= self.keys.issued

    def reaches(self, volume: str) -> bool:
        return self.disks.takes_writes(volume)

    def mounted_folder(self, volume: str) -> Path | None:
        mount = self.disks.table.get(volume)
        return mount.point.readlink() if mount else None

    @property
    def has_own_names(self) -> bool:
        return self.stage.hosts_mode

    def resolve(self, name: str) -> str | None:
        if self.stage.hosts_mode:
            return hosts_of((self.root / "etc/hosts").read_text()).get(name)
        if self.stage.dns.unreachable:
            raise TryLater("no DNS")
        return next(iter(self.stage.dns.addresses(name)), None)

    def links(self) -> dict[str, str]:
        """Manifest links, by file name, with the volume each leads to."""
        folder = self.root / "etc/kubernetes/manifests"
        found = sorted(folder.iterdir()) if folder.is_dir() else []
        return {each.name: each.readlink().parts[2].removeprefix("master-") for each in found if each.is_symlink()}

    @property
    def status(self) -> dict[str, Any]:
        """What this machine tells from outside."""
        return dict(json.loads((self.root / "run/protokube/status.json").read_text()))

    def is_guarded(self, key: str) -> bool:
        """Whether an etcd here that finds its data gone would refuse to start; so from the second round on."""
        etcd = self.stage.wanted.etcd_cluster(key)
        assert etcd is not None
        file = self.root / etcd.pod.config_file.lstrip("/")
        config = read_yaml(file.read_text()) if file.exists() else {}
        return config.get("initial-cluster-state") == "existing" and "," not in config["initial-cluster"]

    @property
    def sentence(self) -> str:
        """The report of its last round in one line."""
        return self.round_.report.sentence(self.edges.clock.now()) if self.round_ else ""
