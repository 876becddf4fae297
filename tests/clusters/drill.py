"""A pretended cluster on which drills are played under a clock of its own: what the cloud is told has consequences,
which the test writes down, each at its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from operator import eq
from typing import Any

from builders.view import CLUSTER, SHORTS, a_host, a_view, an_agent
from protokube.errors import TryLater
from protokube.etcd import Hash, KeyValue, Range, Status
from protokube.local.drill.writer import Writer, as_found
from protokube.members.start_values import Listed
from protokube.records import Record
from protokube.view.cluster import ClusterView
from protokube.view.values import HostView

Transform = Callable[[ClusterView], ClusterView]


class MemoryEtcd:
    """The far side of a writer: keys in a dictionary; a test decides what becomes of each write."""

    def __init__(self, fate: Callable[[int], str] = lambda _: "kept") -> None:
        self.keys: dict[str, str] = {}
        self.revision = 0
        self.fate, self.asked = fate, 0

    def put(self, key: str, value: str, lease: int = 0) -> int:
        """ "kept", "lost" (acknowledged and forgotten), "silent" (kept without an answer), "away" (neither), "back"."""
        self.asked += 1
        fate = self.fate(self.asked)
        if fate == "away":
            raise TryLater("nobody answers")
        if fate != "lost":
            self.keys[key] = value
        if fate == "silent":
            raise TryLater("no answer")
        self.revision += 1
        return self.revision if fate != "back" else 1

    def read(self, prefix: str) -> Sequence[KeyValue]:
        found = sorted(self.keys.items())
        return [
            KeyValue(key=key, value=value, lease=0, mod_revision=1) for key, value in found if key.startswith(prefix)
        ]

    def read_at(self, prefix: str) -> Range:
        return Range(cluster_id=1, revision=self.revision, keys=self.read(prefix))

    def members(self) -> Sequence[Listed]:
        raise NotImplementedError

    def listed_by(self, endpoint: str) -> Sequence[Listed]:
        raise NotImplementedError

    def status(self, endpoint: str) -> Status:
        raise NotImplementedError

    def hash(self, endpoint: str, revision: int) -> Hash:
        raise NotImplementedError

    def add_learner(self, peer_url: str) -> Listed:
        raise NotImplementedError

    def promote(self, member: int) -> None:
        raise NotImplementedError

    def remove(self, member: int) -> None:
        raise NotImplementedError

    def grant(self, ttl: int) -> int:
        raise NotImplementedError

    def keep(self, lease: int) -> bool:
        raise NotImplementedError

    def revoke(self, lease: int) -> None:
        raise NotImplementedError

    def create(self, key: str, value: str, lease: int = 0) -> bool:
        raise NotImplementedError


class PretendWriteSession:
    def __init__(self, writer: Writer, etcd: MemoryEtcd, api: PretendWriteSession | None = None) -> None:
        self.writer, self.etcd, self.api = writer, etcd, api

    def read_back(self) -> dict[str, str]:
        return as_found(self.etcd.read(self.writer.log().prefix))

    def landed(self, key: str) -> bool:
        return key in self.etcd.keys


class PretendOld:
    """A holder of old whose etcd ends so many seconds after it woke up."""

    def __init__(self, ground: PretendGround) -> None:
        self.ground = ground

    def runs_etcd(self) -> bool:
        woke = self.ground.woke
        return self.ground.old_runs and (woke is None or self.ground.now() < woke + self.ground.old_lasts)

    def write(self, key: str) -> bool:
        if self.ground.old_lands:
            self.ground.etcd.keys[key] = "old"
        return self.ground.old_acknowledges


class PretendGround:
    """Implements Ground."""

    def __init__(
        self, etcd: MemoryEtcd | None = None, before: ClusterView | None = None, api: MemoryEtcd | None = None
    ) -> None:
        """`api`: what stores the objects of an API server, if there is one."""
        self.etcd, self.api = etcd or MemoryEtcd(), api
        self.before = before or a_view()
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.reactions: dict[str, Callable[[dict[str, Any]], None]] = {}
        self.readable = True
        self.woke: float | None = None
        self.old_runs, self.old_lasts, self.old_acknowledges, self.old_lands = True, 0.3, False, False
        self._clock = 100.0
        self._writing = False
        self._events: list[tuple[float, Transform]] = []

    def now(self) -> float:
        return self._clock

    def sleep(self, seconds: float) -> None:
        """In pieces, with a turn of the writer after each: its gaps are those of this clock, not of a busy machine."""
        while seconds > 0:
            piece = min(seconds, 0.5)
            self._clock += piece
            seconds -= piece
            asked, end = self._asked(), time.monotonic() + 0.5
            while self._writing and any(map(eq, self._asked(), asked)) and time.monotonic() < end:
                time.sleep(0.0005)

    def _asked(self) -> list[int]:
        return [each.asked for each in (self.etcd, self.api) if each is not None]

    def look(self) -> ClusterView:
        view = self.before
        for at, transform in sorted(self._events, key=lambda event: event[0]):
            if at <= self._clock:
                view = transform(view)
        return reported(view)

    def glance(self) -> ClusterView:
        return self.look()

    def call(self, method: str, **arguments: Any) -> Any:
        self.calls.append((method, arguments))
        if method == "thaw_host":
            self.woke = self._clock
        if method in self.reactions:
            self.reactions[method](arguments)

    def after(self, seconds: float, transform: Transform) -> None:
        """From then on, the cluster is other than it was."""
        self._events.append((self._clock + seconds, transform))

    @contextmanager
    def writing(self, view: ClusterView, key: str) -> Iterator[PretendWriteSession]:
        with ExitStack() as stack:
            writer = stack.enter_context(self._writer(self.etcd))
            api = PretendWriteSession(stack.enter_context(self._writer(self.api)), self.api) if self.api else None
            self._writing = True
            session = PretendWriteSession(writer, self.etcd, api)
            if not self.readable:
                session.read_back = _no_quorum  # type: ignore[method-assign]
            yield session

    def _writer(self, etcd: MemoryEtcd) -> Writer:
        return Writer(etcd, "/drill/", every=0.0005, after_a_failure=0.0005, now=self.now)

    def old_host(self, host: HostView, client_port: int) -> PretendOld:
        return PretendOld(self)


def _no_quorum() -> dict[str, str]:
    raise TryLater("no quorum")


def dead(number: int) -> Transform:
    """The host is gone, its member with it, and its volume is free."""

    def transform(view: ClusterView) -> ClusterView:
        short = SHORTS[number]
        hosts = tuple(each for each in view.hosts if each.name != f"master-{number}")
        disks = tuple(
            replace(each, attached_to=None, phase="free") if each.member == f"main/{short}" else each
            for each in view.disks
        )
        members = tuple(
            replace(each, healthy=False, host=None) if each.member == f"main/{short}" else each for each in view.members
        )
        return replace(view, hosts=hosts, disks=disks, members=members)

    return transform


def taken_over(short: str, number: int, *, raises: int = 1, address: int | None = None) -> Transform:
    """A new host holds the member's volume, everybody is connected, and all names are right."""

    def transform(view: ClusterView) -> ClusterView:
        new = a_host(number, **({} if address is None else {"address": f"10.77.0.{address}"}))
        hosts = (*(each for each in view.hosts if each.name != new.name), new)
        disks = tuple(
            replace(each, attached_to=new.name, phase="serving", epoch=each.epoch + raises)
            if each.member == f"main/{short}"
            else each
            for each in view.disks
        )
        members = tuple(
            replace(each, host=new.name, healthy=True) if each.member == f"main/{short}" else each
            for each in view.members
        )
        return connected(replace(view, hosts=hosts, disks=disks, members=members))

    return transform


def reported(view: ClusterView) -> ClusterView:
    """Every host has an agent, which reports the phases of what it holds."""
    agents = []
    for host in view.hosts:
        known = view.report(host.name) or an_agent(0, host=host.name, elected=False, mounted=())
        held = {each.id: each.phase for each in view.disks if each.attached_to == host.name}
        agents.append(replace(known, phases=held))
    return replace(view, agents=tuple(agents))


def connected(view: ClusterView) -> ClusterView:
    """Every member's name points at its host, the API's at all of them, and all hosts are connected."""
    addresses = {each.name: each.address for each in view.hosts if each.alive and not each.dead}
    hosts = tuple(replace(each, peers=tuple(sorted(set(addresses.values()) - {each.address}))) for each in view.hosts)
    records = [Record(name=f"api.internal.{CLUSTER}", type="A", values=tuple(sorted(addresses.values())), ttl=10)]
    records += [
        Record(name=each.dns_name, type="A", values=(addresses[each.host],), ttl=5)
        for each in view.members
        if each.host in addresses
    ]
    return reported(replace(view, hosts=hosts, records=tuple(records)))


def unhealthy(short: str) -> Transform:
    def transform(view: ClusterView) -> ClusterView:
        members = tuple(replace(each, healthy=each.healthy and each.member != f"main/{short}") for each in view.members)
        return replace(view, members=members)

    return transform


def healthy(short: str) -> Transform:
    def transform(view: ClusterView) -> ClusterView:
        members = tuple(replace(each, healthy=each.healthy or each.member == f"main/{short}") for each in view.members)
        return replace(view, members=members)

    return transform
