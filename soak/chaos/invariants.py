"""Invariants that must always hold, checked on a sequence of observations. Pure.

An observation is not atomic: an apparent duplicate may be an old process that ends while a new one starts. So most
rules require the same finding in two consecutive observations.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

WINDOW = 60.0
MOST_ROUNDS = 300
"""Rounds of one agent within a window: one every ten seconds, and one for each event."""
MOST_STARTS = 8
"""Starts of etcd on one volume of one host within a window."""
LONGEST_LIE = 15.0
"""Seconds that `status` may report ready while no member answers."""
LONGEST_SILENCE = 45.0
"""Seconds that a volume may be attached but not served without a reason."""


@dataclass(frozen=True, slots=True, order=True)
class Process:
    """A process with its start time, because pids are reused."""

    pid: int
    started: int


@dataclass(frozen=True, slots=True, order=True)
class Etcd:
    """A running etcd, identified by the volume with its data."""

    host: str
    volume: str
    member: str
    """`main/a`, as the volume is tagged; empty if it is not listed."""
    process: Process


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One observation of the cluster from outside."""

    at: float
    mounts: frozenset[tuple[str, str]] = frozenset()
    """Pairs of a volume and a host that has it mounted."""
    devices: Mapping[str, int] = field(default_factory=dict)
    """By volume: how many block devices are backed by its disk."""
    etcds: frozenset[Etcd] = frozenset()
    """The etcd processes on hosts that were not declared dead."""
    rounds: Mapping[str, int] = field(default_factory=dict)
    """By host: the number of its agent's last round."""
    ready: bool = False
    answered: float = 0.0
    """When a client of etcd last received a reply."""
    calling: bool = True
    """Whether clients are calling at all."""
    bugs: frozenset[str] = frozenset()
    """Unexpected errors in agents."""
    unexplained: frozenset[str] = frozenset()
    """Members whose volume is attached to a live host but not served, without a reason."""


class Judge:
    """Checks observations; remembers only what it needs of earlier ones."""

    def __init__(self) -> None:
        self._before = Look(at=0.0)
        self._rounds: defaultdict[str, deque[tuple[float, int]]] = defaultdict(deque)
        self._starts: defaultdict[tuple[str, str], dict[Process, float]] = defaultdict(dict)
        self._ready_since: float | None = None
        self._silent_since: dict[str, float] = {}
        self._reported: set[str] = set()

    def feed(self, look: Look) -> list[str]:
        """The invariants that this observation shows to be broken; each is reported once."""
        found = [
            *self._doubled(look),
            *self._flapping(look),
            *self._restarting(look),
            *self._untrue(look),
            *self._silent(look),
            *(f"unexpected error in an agent: {each}" for each in sorted(look.bugs)),
        ]
        self._before = look
        news = [each for each in found if each not in self._reported]
        self._reported.update(news)
        return news

    def _doubled(self, look: Look) -> Iterator[str]:
        mounts = look.mounts & self._before.mounts
        for volume, count in Counter(volume for volume, _ in mounts).items():
            if count > 1:
                hosts = sorted(host for each, host in mounts if each == volume)
                yield f"{volume} is mounted by {' and '.join(hosts)}"
        for volume, devices in look.devices.items():
            if devices > 1 and self._before.devices.get(volume, 0) > 1:
                yield f"{devices} devices show the disk of {volume}"
        for one, other in combinations(sorted(look.etcds & self._before.etcds), 2):
            pids = f"processes {one.process.pid} and {other.process.pid}"
            if one.volume == other.volume:
                yield f"two etcd run on {one.volume} ({one.host}, {other.host}): {pids}"
            elif one.member and one.member == other.member:
                yield f"two etcd run for {one.member} ({one.host}, {other.host}): {pids}"
            elif one.host == other.host and cluster_of(one) == cluster_of(other):
                yield f"{one.host} runs two members of one etcd cluster, {one.member} and {other.member}: {pids}"

    def _flapping(self, look: Look) -> Iterator[str]:
        for host, number in look.rounds.items():
            seen = self._rounds[host]
            if seen and number < seen[-1][1]:  # a new agent starts counting at 1
                seen.clear()
            seen.append((look.at, number))
            while look.at - seen[0][0] > WINDOW:
                seen.popleft()
            made = number - seen[0][1]
            if made > MOST_ROUNDS:
                yield f"the agent of {host} runs more than {MOST_ROUNDS} rounds in a minute"

    def _restarting(self, look: Look) -> Iterator[str]:
        for etcd in look.etcds:
            self._starts[etcd.host, etcd.volume].setdefault(etcd.process, look.at)
        for (host, volume), starts in self._starts.items():
            recent = [at for at in starts.values() if look.at - at <= WINDOW]
            if len(recent) > MOST_STARTS:
                yield f"etcd on {volume} of {host} starts more than {MOST_STARTS} times in a minute"

    def _untrue(self, look: Look) -> Iterator[str]:
        if not (look.ready and look.calling):
            self._ready_since = None
            return
        self._ready_since = look.at if self._ready_since is None else self._ready_since
        if look.at - max(self._ready_since, look.answered) > LONGEST_LIE:
            yield f"`status` says ready for {LONGEST_LIE:g} s while no member answers any client"

    def _silent(self, look: Look) -> Iterator[str]:
        self._silent_since = {each: self._silent_since.get(each, look.at) for each in look.unexplained}
        for each, since in self._silent_since.items():
            if look.at - since > LONGEST_SILENCE:
                yield f"{each} is not served for {LONGEST_SILENCE:g} s, and no reason is given"


def cluster_of(etcd: Etcd) -> str:
    return etcd.member.partition("/")[0]
