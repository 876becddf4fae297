"""One master of three whose etcd is well, and the rounds in which its agent takes a revision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from builders.agent import Alone, Machines, a_machine, a_mounted_volume, a_round
from builders.revisions import CLUSTER, a_revision, keep, with_settings
from clusters.scenario.edges import FakeClock, HostClock, ShakyStore
from clusters.scenario.host import wanted_of
from protokube.agent.delivery import present, revision
from protokube.agent.delivery.decide import Action
from protokube.agent.delivery.revision import SOON, apply
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.etcd import Status
from protokube.host import Job
from protokube.host.running import Command, Runs
from protokube.launch.revisions import Revision, change_rollout, put_in_force, read_rollout
from protokube.launch.rollout import Rollout, Turn
from protokube.members.start_values import Listed
from protokube.store.memory import MemoryStore

ONE = a_revision(1, wanted_of())
TWO = a_revision(2, with_settings(**{"snapshot-count": 2}))
ME, OTHER, THIRD = a_machine("i-1"), a_machine("i-2"), a_machine("i-3")
LIVE = {each.id: each.address for each in (ME, OTHER, THIRD)}


@dataclass
class Etcd:
    """Three members that are well."""

    ill: set[str] = field(default_factory=set)

    def members(self) -> Sequence[Listed]:
        return [
            Listed(id=ord(each.short), name=each.name, peer_urls=(each.peer_url,), client_urls=(each.client_url,))
            for each in wanted_of().etcd[0].members
        ]

    def survey(self, _seconds: float, unlikely: str = "") -> Mapping[str, Status]:
        status = Status(
            cluster_id=1, member_id=1, leader=1, revision=9, raft_term=2, raft_index=5, applied_index=5, db_size=1,
            version="3.6.1", learner=False,
        )  # fmt: skip
        return {each.name: status for each in wanted_of().etcd[0].members if each.name not in self.ill}


@dataclass
class Programs:
    state: Runs = Runs.CURRENT

    def runs(self, _command: Command) -> Runs:
        return self.state


@dataclass
class Disks:
    busy: tuple[tuple[Job, float], ...] = ()

    def running(self) -> tuple[tuple[Job, float], ...]:
        return self.busy


@dataclass
class Volumes:
    consistent: bool = True


class Bench:
    """One master of three, round after round; its agent starts again whenever it asks for that."""

    def __init__(self, root: Path, name: str, *known: Revision) -> None:
        self.store = ShakyStore(MemoryStore(name))
        keep(self.store, ONE, *known)
        put_in_force(self.store, CLUSTER, ONE, running=False)
        self.clock, self.presence, self.etcd = FakeClock(), Alone(LIVE), Etcd()
        self.programs, self.disks, self.volumes = Programs(), Disks(), Volumes()
        self.machines = Machines(ME, OTHER, THIRD)
        self.root = root
        self.start()

    def start(self) -> None:
        """The agent, with nothing in memory."""
        wanted = present.at_start(self.root, ONE.master, self.store)
        self.edges = a_round(
            self.root, me=ME, clock=HostClock(self.clock), store=self.store, presence=self.presence,
            etcd={"main": self.etcd}, processes=self.programs, disks=self.disks, volumes=self.volumes,
            machines=self.machines,
        ).edges  # fmt: skip
        self.wanted = wanted

    def a_round(self) -> Round:
        round_ = Round(edges=self.edges, wanted=self.wanted, report=Report())
        round_.mounted = [a_mounted_volume(round_)]
        return round_

    def sync(self, seconds: float = 0.0) -> Round:
        """One round, so many seconds later."""
        self.clock.advance(seconds)
        round_ = self.a_round()
        revision.sync(round_)
        round_.forget()
        if round_.restart_agent:
            self.start()
        return round_

    def until(self, reached: Callable[[], bool], rounds: int = 200) -> None:
        for _ in range(rounds):
            if reached():
                return
            self.sync(SOON)
        raise AssertionError(f"never reached: {self.record}")

    @property
    def record(self) -> Rollout:
        found = read_rollout(self.store.inner, CLUSTER)
        assert found is not None
        return found

    def change(self, **fields: Any) -> None:
        """Another writer of the record."""
        change_rollout(self.store.inner, CLUSTER, lambda known: replace(known, **fields))

    @property
    def runs(self) -> tuple[int, int | None]:
        """The present and the former revision."""
        former = present.read(self.root / present.FORMER)
        return self.wanted.revision, former.number if former else None

    def apply(self, action: Action) -> Round:
        round_ = self.a_round()
        apply(round_, self.record, action)
        return round_


def turn_of(machine: str, at: float = 5.0) -> Turn:
    return Turn(machine=machine, name=machine, at=at)
