"""A model of one etcd cluster, as far as our Etcd Protocol, the manifest and the data directory show it.

A member runs on a machine if and only if its kubelet was started and the manifest link there leads to a mounted volume.
It reads the file we wrote and what is in its data directory, and does what etcd 3.4 and 3.5 were seen to do, also where
that is a disaster: two blank members started `new` form a second cluster beside the survivor, and a voter started
`existing` on an empty directory joins with a forgotten vote.

Replication is immediate and goes to all members that can be reached; a state is one value, told apart by its sequence
number. A leader needs a majority of the voters, none of them ahead of it: that much is Raft. So is that a leader
remembers what each member acknowledged, for as long as it leads: one that comes back with less panics, and says so in
the output of its pod. A new leader knows nothing of that, and lets it catch up.
"""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

from clusters.scenario.edges import FakeClock
from protokube import fast_yaml
from protokube.errors import TryLater
from protokube.etcd import Alarm, KeyValue
from protokube.members.start_values import Listed

STEPS_DOWN = 2.0
"""Seconds after which a leader without a majority is none any more, and forgets what others acknowledged to it."""
DOWNGRADE = "invalid downgrade; server version is lower than determined cluster version"
Lease = tuple[int, float]
"""Its seconds, and when it ends."""


class Machine(Protocol):
    """What the model needs to know of a machine."""

    @property
    def id(self) -> str: ...

    @property
    def address(self) -> str: ...

    @property
    def root(self) -> Path: ...

    @property
    def runs(self) -> bool:
        """Neither dead nor frozen."""

    @property
    def kubelet_started(self) -> bool: ...

    def has_keys(self, names: Iterable[str]) -> bool: ...

    def reaches(self, volume: str) -> bool: ...

    def mounted_folder(self, volume: str) -> Path | None:
        """Where a volume's file system really lies, if it is mounted there."""

    @property
    def has_own_names(self) -> bool:
        """Whether other machines may see other addresses."""

    def resolve(self, name: str) -> str | None:
        """The address of a name, as this machine sees it; TryLater if its DNS does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything a cluster agreed on, up to one point."""

    sequence: int = 0
    history: int = 0
    """Which beginning it goes back to; 0 before the first leader. Two that differ are two clusters."""
    members: tuple[Listed, ...]
    keys: Mapping[str, KeyValue] = field(default_factory=dict)
    leases: Mapping[int, Lease] = field(default_factory=dict)
    writes: frozenset[int] = frozenset()
    alarms: frozenset[Alarm] = frozenset()
    live: int = 0
    """Bytes of current values; `old` are bytes of revisions up to `old_until` that were replaced."""
    old: int = 0
    old_until: int = 0
    version: tuple[int, int] = (0, 0)
    """Of the oldest program, as the members agreed on it; it never goes back."""

    @property
    def voters(self) -> set[int]:
        return {each.id for each in self.members if not each.learner}

    def member(self, id: int) -> Listed | None:  # noqa: A002
        return next((each for each in self.members if each.id == id), None)

    def by_url(self, url: str) -> Listed | None:
        return next((each for each in self.members if url in each.peer_urls), None)


@dataclass(slots=True)
class Db:
    """What one data directory holds; it lives as long as its file does."""

    file: Path
    cluster: int
    member: int
    state: State
    old_copy: bool = False
    """It was put back from a copy that its records tell from the newest data."""
    size: int = 1
    """Bytes of the file: it grows, and shrinks only when it is defragmented."""
    corrupt: bool = False
    """etcd cannot start with it."""


@dataclass(frozen=True, slots=True)
class Pod:
    """What the kubelet was told."""

    volume: str
    text: str


@dataclass(slots=True)
class Process:
    machine: Machine
    pod: Pod
    name: str
    host_name: str
    """Of its peer URL."""
    db: Db
    version: str
    """Of its program."""
    known: bool = False
    """Whether peers, when they could last ask, found it where its name points."""


Found = tuple[Process, list[Process]]
"""Who leads, and all who follow."""


@cache
def read_yaml(text: str) -> Any:
    return fast_yaml.load(text)


def series(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


def host_of(url: str) -> str:
    return url.split("//")[1].rsplit(":", 1)[0]


class EtcdModel:
    """One etcd cluster, `main` or `events`: its processes, wherever they run."""

    def __init__(self, file_name: str, clock: FakeClock, carried: Callable[[str], None]) -> None:
        self.file_name, self.clock, self._carried = file_name, clock, carried
        self.processes: dict[str, Process] = {}
        self.exits: dict[str, str] = {}
        """By machine: why etcd did not start there, or stopped."""
        self.histories: list[int] = []
        self.forgot: list[str] = []
        """Voters that began with nothing where they had acknowledged something before."""
        self.early: list[str] = []
        """Members that were started while their name led elsewhere: their peers turn them away."""
        self.started_old: list[str] = []
        """Members that were started on an older copy of their data."""
        self.removed_running: list[int] = []
        """Ids that were removed while their member ran."""
        self.acknowledged: set[int] = set()
        self.rejected: dict[str, Any] = {}
        """Settings with which etcd does not start."""
        self.alarm_when_raised = ""
        """The alarm that a member raises at the moment in which the members agree on a newer version."""
        self.dbs: dict[Path, Db] = {}
        self.starts = 0
        self.answers_lost = False
        self.quota = 0
        """Bytes; 0 is none."""
        self.lingering: set[str] = set()
        """Machines where etcd does not end, though its pod or its files were taken away, or its disk failed."""
        self.preferred = 0
        """Who leads if it can."""
        self.panics: list[str] = []
        self._acknowledged: tuple[Process | None, dict[int, int]] = (None, {})
        """Who leads, and by member the sequence that this leader has its word for."""
        self._leads_until = 0.0
        self._numbers = itertools.count(1)

    def number(self) -> int:
        """One that was not used before."""
        return next(self._numbers)

    # The kubelet: what runs follows from files.

    def refresh(self, machine: Machine) -> None:
        """Start and stop what the machine's kubelet would by now."""
        process = self.processes.get(machine.id)
        if not machine.runs and machine.kubelet_started:
            return  # frozen: it does nothing, and nothing is done to it
        pod = self._pod(machine)
        if process is not None and machine.id in self.lingering:
            self.progress()
            return
        if process is not None and (
            process.pod != pod or not machine.reaches(process.pod.volume) or not process.db.file.exists()
        ):
            self.stop(machine.id, "its pod was taken away" if pod != process.pod else "its disk failed")
            process = None
        if process is None and pod is not None:
            self._start(machine, pod)
        self.progress()

    def stop(self, machine: str, why: str) -> None:
        if self.processes.pop(machine, None) is not None:
            self.exits[machine] = why

    def _pod(self, machine: Machine) -> Pod | None:
        link = machine.root / "etc/kubernetes/manifests" / self.file_name
        if not machine.kubelet_started or not link.is_symlink():
            return None
        target = link.readlink()
        try:
            text = (machine.root / str(target).lstrip("/")).read_text()
        except OSError:
            return None
        return Pod(target.parts[2].removeprefix("master-"), text)

    def _start(self, machine: Machine, pod: Pod) -> None:
        spec = read_yaml(pod.text)["spec"]
        paths = {each["name"]: each["hostPath"]["path"] for each in spec["volumes"]}
        environment = {each["name"]: each["value"] for each in spec["containers"][0]["env"]}
        settings = read_yaml((machine.root / environment["ETCD_CONFIG_FILE"].lstrip("/")).read_text())
        folder = machine.mounted_folder(pod.volume)
        if folder is None or not machine.reaches(pod.volume):
            self.exits[machine.id] = "its volume is not there"
            return
        if not machine.has_keys([f"{settings['name']}-peer", f"{settings['name']}-server"]):
            self.exits[machine.id] = "it has no certificates"
            return
        if any(settings.get(name) == value for name, value in self.rejected.items()):
            self.exits[machine.id] = "it rejects its settings"
            self._write_output(machine, {"level": "fatal", "msg": f"invalid settings: {self.rejected}"})
            return
        data = folder / str(paths["varetcdata"]).split(f"/mnt/master-{pod.volume}/")[1]
        db = self._open(machine, settings, data)
        if db is None:
            return
        if db.corrupt:
            self.exits[machine.id] = "its data is corrupt"
            begins = {"level": "info", "msg": "starting an etcd server"}
            self._write_output(machine, begins, {"level": "fatal", "msg": "failed", "error": "walpb: crc mismatch"})
            return
        version = spec["containers"][0]["image"].rpartition(":")[2].partition("-")[0]
        if series(version) < db.state.version:
            self.exits[machine.id] = "cluster cannot be downgraded"
            self._write_output(machine, {"level": "fatal", "msg": DOWNGRADE})
            return
        self._carried(pod.volume)
        if db.old_copy:
            self.started_old.append(f"{settings['name']} on {machine.id}")
        self.starts += 1
        host = host_of(settings["initial-advertise-peer-urls"])
        self.processes[machine.id] = Process(machine, pod, settings["name"], host, db, version)
        if not _finds(machine, self.processes[machine.id], unless=True):
            self.early.append(f"{settings['name']} on {machine.id}")

    def _open(self, machine: Machine, settings: dict[str, Any], data: Path) -> Db | None:
        """The data directory, or a new one if this is allowed to begin, as etcd decides it."""
        file = data / "member" / "db"
        if file.exists():
            return self.dbs[Path(file.read_text())]
        url = settings["initial-advertise-peer-urls"]
        initial = dict(pair.split("=", 1) for pair in settings["initial-cluster"].split(","))
        others = [each for each in initial.values() if each != url]
        remote = self._ask(machine, others)
        if settings["initial-cluster-state"] == "new":
            token = settings["initial-cluster-token"]
            members = tuple(
                sorted(
                    (
                        Listed(id=self._founder(each, token), name=name, peer_urls=(each,), client_urls=())
                        for name, each in initial.items()
                    ),
                    key=lambda each: each.id,
                )
            )
            me = self._founder(url, token)
            known = remote.member(me) if remote else None
            if known is not None and known.started:
                self.exits[machine.id] = "this member has already been bootstrapped"
                return None
            cluster = zlib.crc32(f"{token} {sorted(initial.items())}".encode())
            return self._make(file, cluster, me, State(members=members))
        if remote is None:
            self.exits[machine.id] = "could not retrieve cluster information from the given URLs"
            return None
        if sorted(initial.values()) != sorted(each for member in remote.members for each in member.peer_urls):
            self.exits[machine.id] = "member count is unequal"
            return None
        mine = remote.by_url(url)
        assert mine is not None
        if not mine.learner and mine.started:
            self.forgot.append(settings["name"])
        cluster = next(each.db.cluster for each in self.processes.values() if each.db.state is remote)
        return self._make(file, cluster, mine.id, State(members=remote.members))

    def _founder(self, url: str, token: str) -> int:
        return zlib.crc32(f"{url} {token}".encode())

    def _make(self, file: Path, cluster: int, member: int, state: State) -> Db:
        (file.parent / "wal").mkdir(parents=True)
        (file.parent / "wal" / "0000000000000000-0000000000000000.wal").touch()
        key = file.parent / f"db-{self.number()}"
        file.write_text(str(key))
        self.dbs[key] = Db(file, cluster, member, state)
        return self.dbs[key]

    def copies(self, folder: Path) -> dict[str, Db]:
        """What lies below a folder now, by its path there: a copy that does not change any more."""
        found = ((file.relative_to(folder), file) for file in folder.glob("**/member/db"))
        return {
            str(place): replace(self.dbs[key]) for place, file in found if (key := Path(file.read_text())) in self.dbs
        }

    def put_back(self, folder: Path, copies: Mapping[str, Db]) -> None:
        for place, db in copies.items():
            file = folder / place
            key = file.parent / f"db-{self.number()}"
            file.write_text(str(key))
            self.dbs[key] = replace(db, file=file)

    def _ask(self, machine: Machine, urls: Sequence[str]) -> State | None:
        """The first peer that answers about the cluster; none needs a quorum for that."""
        for url in urls:
            for process in self.able():
                if process.host_name == host_of(url) and _finds(machine, process):
                    return process.db.state
        return None

    # Raft.

    def able(self) -> list[Process]:
        """Processes that can take part: running, with a disk that takes their writes."""
        return [each for each in self.processes.values() if each.machine.runs and each.machine.reaches(each.pod.volume)]

    def leader(self) -> Found | None:
        """Who leads, and all who follow."""
        able = self.able()
        for candidate in sorted(
            able, key=lambda each: (-each.db.state.sequence, each.db.member != self.preferred, each.name)
        ):
            state, cluster = candidate.db.state, candidate.db.cluster
            voters = state.voters
            if candidate.db.member not in voters:
                continue
            group = [
                each
                for each in able
                if each is candidate
                or (each.db.cluster == cluster and state.member(each.db.member) and _linked(candidate, each))
            ]
            votes = {
                each.db.member
                for each in group
                if each.db.member in voters and each.db.state.sequence <= state.sequence
            }
            if 2 * len(votes) > len(voters):
                return candidate, group
        return None

    def progress(self) -> Found | None:
        """Whatever goes on by itself: a first leader, catching up, telling one's client URL, leases that end."""
        for process in self.processes.values():
            if process.machine.runs:
                process.known = _where_its_name_points(process)
        found = self._led_without_copies()
        if found is None:
            return None
        leader, group = found
        self._end_removed(leader)
        if leader.db.state.history == 0:
            self.histories.append(len(self.histories) + 1)
            self.carry_out(found, lambda state: replace(state, history=self.histories[-1]))
        state = leader.db.state
        for process in group:
            process.db.state = state
            self._note_acknowledged(leader, process)
        for process in group:
            me = state.member(process.db.member)
            if me is not None and not me.started:
                urls = (f"https://{process.host_name}:4001",)
                started = replace(me, name=process.name, client_urls=urls)
                state = self.carry_out(found, partial(with_member, before=me, after=started))
        oldest = min(series(each.version) for each in group)
        if len(group) == len(state.members) and oldest > state.version:
            alarms = {Alarm(leader.db.member, self.alarm_when_raised)} if self.alarm_when_raised else set()
            state = self.carry_out(
                found, lambda known: replace(known, version=oldest, alarms=known.alarms | frozenset(alarms))
            )
        over = {lease for lease, (_, ends) in state.leases.items() if ends <= self.clock.seconds}
        if over:
            self.carry_out(found, partial(without_leases, over=over))
        return found

    def _end_removed(self, leader: Process) -> None:
        """A member that is not in the list any more is told so by those that are, and exits whenever it is started."""
        for process in self.able():
            removed = process.db.cluster == leader.db.cluster and leader.db.state.member(process.db.member) is None
            if removed and _linked(leader, process):
                self.stop(process.machine.id, "the member has been permanently removed from the cluster")

    def remove_by_hand(self, name: str) -> int:
        """What a person does with etcdctl, whether the member runs or not."""
        found = self.led()
        (old,) = (each for each in found[0].db.state.members if each.name == name)
        left = tuple(each for each in found[0].db.state.members if each != old)
        self.carry_out(found, lambda known: replace(known, members=left))
        return old.id

    def add_by_hand(self, url: str, *, learner: bool) -> int:
        new = Listed(id=self.number() + 2**32, name="", peer_urls=(url,), client_urls=(), learner=learner)
        self.carry_out(self.led(), lambda known: replace(known, members=(*known.members, new)))
        return new.id

    def _led_without_copies(self) -> Found | None:
        """Whoever lacks what it acknowledged to this very leader panics; the others may have no majority then."""
        while (found := self.leader()) is not None:
            leader, group = found
            if self._acknowledged[0] is not leader:
                self._acknowledged = (leader, {})
            known = self._acknowledged[1]
            lacking = [each for each in group if each.db.state.sequence < known.get(each.db.member, 0)]
            if not lacking:
                self._leads_until = self.clock.seconds + STEPS_DOWN
                return found
            for process in lacking:
                self._panic(process, known[process.db.member])
        if self.clock.seconds >= self._leads_until:
            self._acknowledged = (None, {})
        return None

    def _panic(self, process: Process, acknowledged: int) -> None:
        lasts = process.db.state.sequence
        sentence = (
            f"tocommit({acknowledged}) is out of range [lastIndex({lasts})]."
            " Was the raft log corrupted, truncated, or lost?"
        )
        ids = {"cluster-id": f"{process.db.cluster:x}", "local-member-id": f"{process.db.member:x}"}
        self._write_output(
            process.machine,
            {"level": "info", "msg": "starting an etcd server"},
            {"level": "info", "msg": "restarting local member", **ids},
            {"level": "panic", "msg": sentence},
        )
        self.panics.append(f"{process.name} on {process.machine.id}")
        self.stop(process.machine.id, sentence)

    def _write_output(self, machine: Machine, *lines: dict[str, str]) -> None:
        """As the pod runner keeps it. In the time of the files, which no fake clock moves."""
        at = datetime.now(UTC).isoformat()
        pod = "etcd-server" if self.file_name == "etcd.manifest" else "etcd-server-events"
        file = machine.root / "var/log/pods" / f"kube-system_{pod}" / "etcd-container.log"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as opened:
            opened.writelines(json.dumps({"ts": at, **line}) + "\n" for line in lines)

    def carry_out(self, found: Found, change: Callable[[State], State]) -> State:
        leader, group = found
        after = replace(change(leader.db.state), sequence=leader.db.state.sequence + 1)
        for process in group:
            process.db.state = after
            self._note_acknowledged(leader, process)
        return after

    def _note_acknowledged(self, leader: Process, process: Process) -> None:
        if self._acknowledged[0] is leader:
            self._acknowledged[1][process.db.member] = process.db.state.sequence

    def fill(self, *, live: int = 0, old: int = 0) -> None:
        """Somebody writes so many bytes more, of which `old` are replaced at once; the quota stops it."""
        found = self.led()
        until = found[0].db.state.sequence + 1
        after = self.carry_out(
            found, lambda state: replace(state, live=state.live + live, old=state.old + old, old_until=until)
        )
        for process in found[1]:
            process.db.size = max(process.db.size, after.live + after.old)
            if self.quota and process.db.size >= self.quota:
                raised = Alarm(process.db.member, "NOSPACE")
                self.carry_out(found, lambda state: replace(state, alarms=state.alarms | {raised}))  # noqa: B023

    def led(self) -> Found:
        """Who answers a question that needs a majority; TryLater without one."""
        found = self.progress()
        if found is None:
            raise TryLater("etcd has no leader")
        return found

    def write(self, number: int) -> bool:
        """What a user writes; whether it was acknowledged."""
        found = self.progress()
        if found is None:
            return False
        self.carry_out(found, lambda state: replace(state, writes=state.writes | {number}))
        self.acknowledged.add(number)
        return True


def _finds(machine: Machine, process: Process, *, unless: bool = False) -> bool:
    """`unless` is the answer where DNS has none."""
    try:
        return machine.resolve(process.host_name) == process.machine.address
    except TryLater:
        return unless


def _where_its_name_points(process: Process) -> bool:
    """Connections outlive a DNS server that is away."""
    try:
        return process.machine.resolve(process.host_name) == process.machine.address
    except TryLater:
        return process.known


def _linked(one: Process, other: Process) -> bool:
    """Each has to find the other: with TLS the one who is called checks the caller's name too."""
    if not (one.known and other.known):
        return False
    if not one.machine.has_own_names:
        return True
    return _finds(one.machine, other) and _finds(other.machine, one)


def with_member(state: State, before: Listed, after: Listed) -> State:
    return replace(state, members=tuple(after if each == before else each for each in state.members))


def without_leases(state: State, over: set[int]) -> State:
    return replace(
        state,
        leases={lease: ends for lease, ends in state.leases.items() if lease not in over},
        keys={key: each for key, each in state.keys.items() if each.lease not in over},
    )
