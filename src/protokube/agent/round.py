"""One round of the agent: what it has observed so far, filled step by step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from protokube.agent.edges import Edges
from protokube.agent.report import Report
from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.host import Mount
from protokube.launch.machine import EtcdCluster, MasterConfig, Member
from protokube.members.diskfaults import FaultRecord
from protokube.members.fatal_messages import FatalMessage
from protokube.members.generation import Generation
from protokube.members.identity import Identity, Unreadable
from protokube.members.older_copy import Older
from protokube.members.start_values import Data, Decision
from protokube.providers.volumes import Volume


@dataclass(frozen=True, slots=True, kw_only=True)
class MountedVolume:
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
    """It holds nothing but what mkfs makes."""
    uuid: str | None
    verified: bool = False
    """This mount was checked, and its epoch raised: `agent.volume.verified`."""
    mount: Mount | None = None

    @property
    def name(self) -> str:
        return f"{self.etcd.key}/{self.member.short}"


@dataclass(slots=True, kw_only=True)
class Round:
    """One round: filled step by step, discarded at its end."""

    edges: Edges
    wanted: MasterConfig
    report: Report
    volumes: Sequence[Volume] | None = None
    """The complete list; None if the provider did not answer this round."""
    gone: set[str] = field(default_factory=set)
    """Volumes that are mounted here or named by the record, and that do not exist according to the provider."""
    unclear: dict[str, str] = field(default_factory=dict)
    """The same for volumes that the provider reports neither as existing nor as missing, with the reason."""
    kept: dict[str, str] = field(default_factory=dict)
    """By etcd cluster, the one attached volume of it that this machine may serve."""
    unused: dict[str, str] | None = None
    """Volumes that serve no member, with the reason; None until this round has computed it."""
    mounted: list[MountedVolume] = field(default_factory=list)
    decisions: dict[str, Decision] = field(default_factory=dict)
    """By volume: whether etcd may start on it, and how."""
    older: dict[str, Older] = field(default_factory=dict)
    """By volume: how its disk is behind what was recorded about it."""
    named: set[str] = field(default_factory=set)
    """DNS names that the authoritative server answers with our address."""
    generations: dict[str, Generation | None] = field(default_factory=dict)
    without_quorum: dict[str, TryLater] = field(default_factory=dict)
    """By etcd cluster: that this round found no quorum."""
    unread: dict[str, ProtokubeError] = field(default_factory=dict)
    """By etcd cluster: the error with which reading its record from the store failed in this round."""
    disk_errors: dict[str, str] = field(default_factory=dict)
    """By volume: the disk error with which reading its identity failed."""
    disk_faults: dict[str, FaultRecord | None] = field(default_factory=dict)
    """By volume: how often its file system broke lately; None if the store could not be read."""
    fatal_messages: dict[str, Sequence[FatalMessage]] = field(default_factory=dict)
    """By pod: etcd's fatal messages in the container log, as first read in this round."""
    leaving: dict[str, str] = field(default_factory=dict)
    """Volumes that are being unmounted, with their etcd cluster; "" where that is unknown."""
    asked: set[str] = field(default_factory=set)
    """What was waited for in this round."""
    settled: set[str] = field(default_factory=set)
    """Volumes whose identity, epoch and mark, on the disk and at the provider, name us as the holder."""
    restart_agent: bool = False
    """The agent restarts itself after this round, with the revision that it has just written to its own disk."""
    end_machine: bool = False
    """The agent ends its machine after this round; the cloud makes another one in its place."""
    next_within: float = math.inf
    """Seconds within which the next round must start."""

    def waiting(self, step: str, about: str, why: str) -> None:
        """Report a wait together with the time at which it began."""
        began = self.edges.clock.now() - self.waited(f"{step} {about}")
        self.report.waiting(step, why, about, since=began)

    @contextmanager
    def reported(self, step: str, about: str) -> Iterator[None]:
        """Report an error as one of this volume or member, so that the step goes on with the others."""
        try:
            yield
        except TryLater as why:
            self.waiting(step, about, why.message)
        except Refused as why:
            self.report.needs_a_person(step, why, about)
        except OSError as why:  # a file of this machine cannot be read or written
            self.waiting(step, about, f"{(why.strerror or str(why)).lower()}: {why.filename or 'unknown file'}")

    def within(self, seconds: float) -> None:
        """Request the next round within this time."""
        self.next_within = min(self.next_within, seconds)

    def waited(self, what: str) -> float:
        """Seconds since this wait began; a round that does not call this ends the wait."""
        self.asked.add(what)
        return self.edges.cache.waited(what, self.edges.clock.monotonic())

    def forget(self) -> None:
        """At the end of a round: drop the start time of every wait that is over."""
        since = self.edges.cache.since
        for what in since.keys() - self.asked:
            del since[what]

    def volume(self, id: str) -> Volume | None:  # noqa: A002
        return next((each for each in self.volumes or () if each.id == id), None)


Step = Callable[[Round], None]
