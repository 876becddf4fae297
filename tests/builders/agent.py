"""Builders for tests of single parts of the agent: they fill in what a test does not care about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from clusters.scenario.edges import FakeClock, HostClock, MemoryKeys, MemoryUnits
from clusters.scenario.host import wanted_of
from protokube.agent.edges import Edges, LeasesRead, MasterAddresses, MasterRevision
from protokube.agent.report import Report
from protokube.agent.round import MountedVolume, Round
from protokube.host import Block, Device
from protokube.launch.machine import MasterConfig
from protokube.members.generation import Generation, encode
from protokube.members.identity import Identity
from protokube.members.start_values import Data
from protokube.providers.machines import Machine
from protokube.providers.volumes import Volume
from protokube.store import layout
from protokube.store.memory import MemoryStore

SIZE = 2**30


def a_machine(named: str = "i-1", *, group: str = "master-a", zone: str = "local") -> Machine:
    return Machine(id=named, name=named, zone=zone, address="10.0.0.1", group=group)


def a_volume(named: str = "vol-a", *, member: str = "a", etcd_cluster: str = "main", **fields: Any) -> Volume:
    """A free volume that nothing was ever on."""
    blank = Volume(
        id=named, zone="local", etcd_cluster=etcd_cluster, member=member, members=("a", "b", "c"), size=SIZE,
        made_empty=True,
    )  # fmt: skip
    return replace(blank, **fields)


def a_block(**fields: Any) -> Block:
    return replace(Block(path=Path("/dev/sdb"), number=(8, 16), size=SIZE, serial="vol-a"), **fields)


def a_device(serial: str | None = "vol-a") -> Device:
    return Device(path=Path("/dev/sdb"), serial=serial)


def a_generation(*, is_open: bool = True, replacements: dict[str, str] | None = None) -> Generation:
    founders = {"a": "vol-a", "b": "vol-b", "c": "vol-c"}
    return Generation(
        id="g1", etcd_cluster="main", token="token-1", founders=founders, replacements=replacements or {}, open=is_open
    )


def a_store(name: str) -> MemoryStore:
    """With the generation record of a formed cluster in it."""
    store = MemoryStore(name)
    store.create(layout.etcd_generation("laptop", "main"), encode(a_generation(is_open=False)))
    return store


def an_identity(*, epoch: int = 3, holder: str = "i-1", volume: str = "vol-a") -> Identity:
    return Identity(
        cluster="laptop", etcd_cluster="main", member="a", volume=volume, generation="g1", epoch=epoch, holder=holder
    )


class Alone:
    """Presence of a master that sees no others, or those that the test sets."""

    def __init__(
        self, live: dict[str, str] | None = None, *, elected: bool = False, serving: Sequence[str] = ()
    ) -> None:
        self.live_masters, self.is_elected, self.retired = live, elected, False
        self.apis, self.grants_restart, self.restart_requests = serving, True, 0
        self.known_revisions: Sequence[MasterRevision] | None = None
        self.hint = ""
        self.external: dict[str, str] = {}

    def live(self) -> dict[str, str] | None:
        return self.live_masters

    def read_at(self) -> LeasesRead | None:
        return None if self.live_masters is None else LeasesRead(cluster_id=1, revision=1)

    def addresses(self) -> dict[str, MasterAddresses] | None:
        if self.live_masters is None:
            return None
        return {
            machine: MasterAddresses(internal=address, external=self.external.get(machine) or address)
            for machine, address in self.live_masters.items()
        }

    def serving(self) -> Sequence[str] | None:
        return None if self.live_masters is None else self.apis

    def elected(self) -> bool:
        return self.is_elected

    def may_restart_api_server(self) -> bool:
        self.restart_requests += 1
        return self.grants_restart

    def revisions(self) -> Sequence[MasterRevision] | None:
        return self.known_revisions

    def rollout_hint(self) -> str | None:
        return None if self.live_masters is None else self.hint

    def retire(self) -> None:
        self.retired = True


class Machines:
    """The provider's list, as the test sets it; this machine is the first in it."""

    def __init__(self, *listed: Machine) -> None:
        self.listed = listed

    def me(self) -> Machine:
        return self.listed[0]

    def list_machines(self) -> Sequence[Machine]:
        return self.listed


def a_round(root: Path, *, wanted: MasterConfig | None = None, **parts: Any) -> Round:
    """A round that has not begun; an edge that is not given must not be touched."""
    nothing = cast(Any, None)
    edges = Edges(
        me=a_machine(), clock=HostClock(FakeClock()), volumes=nothing, machines=nothing, dns=None, disks=nothing,
        units=MemoryUnits(), store=nothing, etcd={}, keys=MemoryKeys(), presence=Alone(), root=root,
        uuid_of=lambda _block: None, new_nonce=lambda: "nonce",
    )  # fmt: skip
    for name, edge in parts.items():
        setattr(edges, name, edge)
    return Round(edges=edges, wanted=wanted or wanted_of(), report=Report())


def a_mounted_volume(round_: Round, volume: str = "vol-a", *, member: str = "a", **fields: Any) -> MountedVolume:
    """A mounted volume with data on it."""
    etcd = round_.wanted.etcd[0]
    found = etcd.member(member)
    assert found is not None
    mounted = MountedVolume(
        volume=volume, etcd=etcd, member=found, point=round_.edges.inside(f"/mnt/master-{volume}"),
        listed=a_volume(volume, attached_to="i-1"), identity=an_identity(volume=volume), data=Data.PRESENT, empty=False,
        uuid=None,
    )  # fmt: skip
    return replace(mounted, **fields)
