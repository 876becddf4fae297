"""A whole cluster in one process, under a fake clock: real agents, and models of everything they talk to.

    stage = Stage(folder)
    stage.boot_all()
    stage.until(stage.healthy)

`run` lets time pass: every agent has its rounds as often as its own pace says, and its leases are kept beside them.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, cast

from clusters.scenario.client import ModelEtcd
from clusters.scenario.copies import DiskCopy, ModelLogs, copy_disk, put_back
from clusters.scenario.disks import MemoryDisks, Platters
from clusters.scenario.edges import (
    AgentDied,
    FakeClock,
    Fuse,
    Fused,
    HostClock,
    Inline,
    MemoryKeys,
    MemoryUnits,
    ShakyCloud,
    ShakyDns,
    ShakyStore,
)
from clusters.scenario.etcd import EtcdModel
from clusters.scenario.host import GENERATION, Host, full_disk, noted, unlimited, wanted_of
from clusters.scenario.processes import ModelProcesses
from protokube.agent.delivery import present
from protokube.agent.edges import Edges
from protokube.agent.etcd.presence import EVERY, ROLLOUT, LeasePresence
from protokube.agent.etcd.spacewatch import SpaceWatch
from protokube.agent.loop import Loop
from protokube.agent.publish import Publisher
from protokube.agent.round import Round
from protokube.agent.sync import run_round
from protokube.errors import Refused
from protokube.launch import revisions
from protokube.launch.machine import MasterConfig
from protokube.launch.revisions import Revision
from protokube.launch.rollout import Rollout
from protokube.members.diskfaults import FaultRecord
from protokube.members.diskfaults import encode as encode_faults
from protokube.members.generation import FORMED, Generation, decode, encode
from protokube.members.identity import FILE, Identity
from protokube.members.identity import decode as decode_identity
from protokube.members.raftmark import decode as decode_mark
from protokube.providers.dns.hosts import HostsDns
from protokube.providers.volumes import AttachmentState, Volume
from protokube.store import NotThere, layout
from protokube.store.memory import MemoryStore

STAGES = count(1)
MOST_ROUNDS = 300
"""In a minute, as in the chaos runs: an agent that does the same thing again and again is broken."""


class Stage:
    """The cloud, the zone, the store, the disks and every machine there ever was."""

    def __init__(
        self,
        folder: Path,
        *,
        clusters: str = "main",
        hosts_mode: bool = False,
        zonal: bool = False,
        rejoin_after: str = "",
    ) -> None:
        self.folder, self.hosts_mode = folder, hosts_mode
        self.hosts: dict[str, Host] = {}
        self.wanted = replace(wanted_of(clusters, rejoin_after), revision=1)
        self.clock = FakeClock()
        self.cloud = ShakyCloud(zonal=zonal)
        self.platters = Platters(folder / "platters")
        self.dns = ShakyDns(self.wanted.cluster)
        self.store = ShakyStore(MemoryStore(f"stage-{next(STAGES)}", clock=lambda: self.clock.wall))
        self.hidden: dict[str, Volume] = {}
        self.beside: set[str] = set()
        """Volumes that were hidden while their machine took another one of that etcd cluster."""
        self.etcd = {each.key: EtcdModel(each.pod.file_name, self.clock, self._carried) for each in self.wanted.etcd}
        self.written = count(1)
        self.template: MasterConfig | None = None
        """The launch data of new machines, where `up` had the cloud make others than those that run."""
        self.replaces = True
        """Whether the cloud makes another machine for one that ended itself."""
        self.left: list[tuple[str, int]] = []
        """The machines that ended themselves, and how many members of the first etcd cluster served until then."""
        self._nonces = count(1)
        for etcd in self.wanted.etcd:
            likes = [self.like(etcd.key, member.short) for member in etcd.members]
            founders = {each.member: each.id for each in self.cloud.create_founders(likes)}
            record = Generation(
                id=GENERATION, etcd_cluster=etcd.key, token=f"token-{GENERATION}-{etcd.key}", founders=founders,
                replacements={}, open=True,
            )  # fmt: skip
            self.store.create(layout.etcd_generation(self.wanted.cluster, etcd.key), encode(record))
        self.put_in_force(self.wanted)

    @property
    def wanted(self) -> MasterConfig:
        """The launch data of new machines; set, it is what every machine has been running all along."""
        return self._wanted

    @wanted.setter
    def wanted(self, wanted: MasterConfig) -> None:
        self._wanted = wanted
        for host in self.hosts.values():
            (host.root / present.PRESENT).unlink(missing_ok=True)
            host.wanted = host.loop.wanted = wanted

    def like(self, key: str, short: str) -> Volume:
        etcd = self.wanted.etcd_cluster(key)
        assert etcd is not None
        member = etcd.member(short)
        assert member is not None
        members = tuple(each.short for each in etcd.members)
        return Volume(
            id="", zone=member.zone, etcd_cluster=key, member=short, members=members, size=member.size, made_empty=True
        )

    # Machines.

    def boot(self, group: str = "master-a", *, wrong_by: float = 0.0, external: str = "") -> Host:
        """A new machine with a new name and address, and an agent that has not had a round yet."""
        machine = self.cloud.add_machine(group=group, external=external)
        root = self.folder / machine.id
        for part in ("etc", "mnt", "run/protokube"):
            (root / part).mkdir(parents=True)
        (root / "etc/hosts").write_text("127.0.0.1\tlocalhost\n")
        clock = HostClock(self.clock, wrong_by=wrong_by)
        disks = MemoryDisks(machine.id, self.platters, clock, self.holder)
        disks.in_use = lambda volume: any(
            machine.id in model.processes and model.processes[machine.id].pod.volume == volume
            for model in self.etcd.values()
        )
        host = Host(
            self, machine, root, clock, disks, MemoryUnits(), MemoryKeys(), Fuse(), cast(Edges, None), cast(Loop, None),
            cast(LeasePresence, None), cast(Publisher, None), self.wanted, due=self.clock.seconds,
            beat_due=self.clock.seconds, launched=self.template,
        )  # fmt: skip
        self.start_agent(host)
        self.hosts[machine.id] = host
        return host

    def boot_all(self) -> list[Host]:
        return [self.boot(group) for group in ("master-a", "master-b", "master-c")]

    def start_agent(self, host: Host) -> None:
        """An agent that remembers nothing."""

        def fused(inner: Any, edge: str) -> Any:
            return Fused(inner, host.fuse, edge)

        cloud = fused(self.cloud.seen_from(host.id), "cloud")
        clients = {key: ModelEtcd(model, host) for key, model in self.etcd.items()}
        dns = HostsDns(self.wanted.cluster, host.root / "etc/hosts") if self.hosts_mode else self.dns

        def wake() -> None:
            host.due = self.clock.seconds

        launched = host.launched or self.wanted
        host.wanted = present.at_start(host.root, launched, self.store)
        host.presence = LeasePresence(
            clients[self.wanted.etcd[0].key], host.machine, host.clock, wake, revision=host.wanted.revision
        )
        host.beside.clear()
        host.edges = Edges(
            space=SpaceWatch(clients, host.clock, wake, host.beside.append),
            me=host.machine, clock=host.clock, volumes=cloud, machines=cloud, dns=fused(dns, "dns"),
            disks=fused(host.disks, "disks"), units=fused(host.units, "units"), store=fused(self.store, "store"),
            etcd={key: fused(each, "etcd") for key, each in clients.items()}, keys=fused(host.keys, "keys"),
            presence=host.presence, root=host.root, uuid_of=host.disks.uuid_of, zone_mode=not self.hosts_mode,
            new_nonce=lambda: f"00000000-0000-4000-8000-{next(self._nonces):012x}",
            logs=ModelLogs(self.etcd.values()), background=Inline(), processes=ModelProcesses(self, host),
            launched=launched.revision, end_machine=lambda: None,
        )  # fmt: skip
        host.loop = Loop(
            host.edges, host.wanted, status=host.root / "run/protokube/status.json", wake=threading.Event()
        )

        host.publisher = Publisher(self.store, clients, host.clock)
        host.loop.publish = host.publisher.offer
        host.edges.unpublished = lambda: host.publisher.trouble

        def after(round_: Round, _took: float) -> None:
            host.round_ = round_

        host.loop.after = after

    def agent_dies(self, host: Host) -> None:
        """Only the agent: etcd and the kubelet go on; a new agent comes up at once."""
        host.disks.end_children()
        host.fuse.left = -1
        self.start_agent(host)

    def kill(self, host: Host) -> None:
        """Pull the plug; nobody has noticed yet."""
        self.cloud.kill_machine(host.id)
        self._go_down(host)

    def ends_itself(self, host: Host) -> None:
        """As its agent asked for; its instance group makes another machine."""
        self.left.append((host.id, len(self.serving(self.wanted.etcd[0].key))))
        host.presence.retire()
        self.kill(host)
        self.declare_dead(host)
        if self.replaces:
            self.boot(host.machine.group)

    def _go_down(self, host: Host) -> None:
        host.alive = host.frozen = False
        host.disks.lose_everything()
        shutil.rmtree(host.root / "run/protokube/verified", ignore_errors=True)  # /run does not outlive a machine
        host.units.started.clear()
        self._refresh_all()

    def reboot(self, host: Host) -> None:
        """The same machine, with what is on its own disk."""
        self._go_down(host)
        host.alive, host.due = True, self.clock.seconds
        self.start_agent(host)

    def freeze(self, host: Host) -> None:
        self.cloud.freeze(host.id)
        host.frozen = True
        self._refresh_all()

    def thaw(self, host: Host, *, clock_slept: float = 0.0) -> None:
        self.cloud.thaw(host.id)
        host.frozen = False
        host.clock.slept += clock_slept

    def declare_dead(self, host: Host) -> None:
        """The machine controller is sure of it: its volumes are cut from it and free for others."""
        self.cloud.declare_dead(host.id)
        for volume in self.hidden.values():
            if volume.attached_to == host.id:
                self.hidden[volume.id] = replace(volume, attached_to=None)
        self._cut_off()

    def finish_detaching(self) -> None:
        """The cloud has detached what it was slow to detach, and is fast again."""
        self.cloud.finish_detaching()
        for volume in self.hidden.values():
            if volume.state is AttachmentState.DETACHING:
                self.hidden[volume.id] = replace(volume, attached_to=None, state=AttachmentState.SETTLED)
        self._cut_off()

    def replace_machine(self, host: Host, group: str = "") -> Host:
        """What an instance group does about a dead machine."""
        self.declare_dead(host)
        return self.boot(group or host.machine.group)

    # Volumes.

    def holder(self, volume: str) -> str | None:
        """Who really reaches it: also while its tags are hidden."""
        if volume in self.hidden:
            return self.hidden[volume].attached_to
        try:
            return self.cloud.holder(volume)
        except Refused:
            return None  # deleted

    def hide(self, volume: str) -> None:
        """Somebody takes the tags away that make it ours: it stays attached, and is not listed any more."""
        self.hidden[volume] = self.cloud.find(volume)
        self.cloud.delete_volume(volume)

    def show(self, volume: str) -> None:
        shown = self.hidden.pop(volume)
        if any(
            (each.attached_to, self.cluster_of(each)) == (shown.attached_to, self.cluster_of(shown))
            for each in self.cloud.volumes()
        ) or not (shown.tagged or self.is_home(volume)):  # without tags, and replaced: nothing says that it is ours
            self.beside.add(volume)
        self.cloud._keep(shown)

    def is_home(self, volume: str) -> bool:
        """Whether the record calls it the home of a member."""
        return any(
            self.generation(etcd.key).volume_of(each.short) == volume
            for etcd in self.wanted.etcd
            for each in etcd.members
        )

    def volume_of(self, member: str) -> str:
        """The volume of `a`, or of `events/a`; there must be exactly one."""
        key, _, short = f"main/{member}".rpartition("/") if "/" not in member else member.rpartition("/")
        (found,) = (each.id for each in self.cloud.volumes() if (each.etcd_cluster, each.member) == (key, short))
        return found

    def cluster_of(self, volume: Volume) -> str:
        """The etcd cluster that a volume was made for, whatever its tags say."""
        for key in self.etcd:
            record = self.generation(key)
            if volume.id in (*record.founders.values(), *record.replacements.values()):
                return key
        return volume.etcd_cluster

    def member_of(self, volume: Volume) -> str:
        """The member that a volume was made for, whatever its tags say."""
        record = self.generation(self.cluster_of(volume))
        made = {each: member for member, each in (*record.founders.items(), *record.replacements.items())}
        return made.get(volume.id, volume.member)

    def holder_of(self, member: str) -> Host:
        holder = self.holder(self.volume_of(member))
        assert holder is not None, f"nobody holds {member}"
        return self.hosts[holder]

    def delete_volume(self, volume: str) -> None:
        self.cloud.delete_volume(volume)
        self._cut_off()

    def copy_disk(self, volume: str) -> DiskCopy:
        """A snapshot of what is on a volume now."""
        return copy_disk(self.platters[volume], self.etcd.values())

    def put_back(self, volume: str, copied: DiskCopy) -> None:
        """Restore a snapshot in place, while nobody has the volume mounted."""
        put_back(self.platters[volume], copied, self.etcd.values())

    def is_told_apart(self, volume: Volume, copied: DiskCopy) -> bool:
        """Whether the provider's epoch or the raft mark is ahead of what is on a copy."""
        identity = copied.identity
        if identity is None:
            return False
        paths = self.store.inner.list_paths(f"{self.wanted.cluster}/etcd/{self.cluster_of(volume)}/raft")
        marks = [decode_mark(self.store.inner.read(each).data.decode().strip()) for each in paths]
        ids = {(db.cluster, db.member): db.state.sequence for dbs in copied.dbs for db in dbs.values()}
        behind = any(mark and mark.commit > ids.get((mark.cluster_id, mark.member_id), mark.commit) for mark in marks)
        return volume.epoch_for(identity.generation) > identity.epoch or behind

    def identity(self, volume: str) -> Identity:
        folder = self.platters[volume].folder
        assert folder is not None
        found = decode_identity((folder / FILE).read_bytes())
        assert isinstance(found, Identity), found
        return found

    def change_tags(self, volume: str, **changed: Any) -> None:
        """Somebody, or a tool, edits what the provider says of a volume."""
        self.cloud._keep(replace(self.cloud.find(volume), **changed))

    def _carried(self, volume: str) -> None:
        self.platters[volume].carried_data = True

    def _cut_off(self) -> None:
        for host in self.hosts.values():
            host.disks.cut_off()
        self._refresh_all()

    # The store.

    def generation(self, key: str = "main") -> Generation:
        found = decode(self.store.inner.read(layout.etcd_generation(self.wanted.cluster, key)).data)
        assert found is not None
        return found

    def call_disks_repaired(self) -> None:
        """What `protokube etcd accept VOLUME --repaired` does, for every disk that broke."""
        store = self.store.inner
        for key in self.etcd:
            for volume in self.platters.by_volume:
                with suppress(NotThere):
                    stored = store.read(layout.etcd_disk_faults(self.wanted.cluster, key, volume))
                    store.replace(stored.path, encode_faults(FaultRecord()), stored.version)

    # Revisions.

    def put_in_force(self, wanted: MasterConfig) -> int:
        """What `up` does with a changed configuration; the number of the revision."""
        store, cluster = self.store.inner, self.wanted.cluster

        def make(number: int) -> Revision:
            master = replace(wanted, revision=number)
            digest = revisions.digest_of(master)
            return Revision(number=number, digest=digest, author="operator", at=self.clock.wall, master=master)

        made = revisions.create_revision(store, cluster, make)
        revisions.put_in_force(store, cluster, made, running=made.number > 1, at=self.clock.wall, by="operator")
        return made.number

    def rollout(self) -> Rollout:
        found = revisions.read_rollout(self.store.inner, self.wanted.cluster)
        assert found is not None
        return found

    def announce(self) -> None:
        """What `up` tells the agents through etcd."""
        host = next(each for each in self.hosts.values() if each.runs)
        host.edges.etcd[self.wanted.etcd[0].key].put(ROLLOUT, f"{self.clock.seconds}")

    # Time.

    def refresh(self, host: Host) -> None:
        """Let the kubelet of a machine do what it would have done by now."""
        with unlimited():  # a full disk of ours is not one of etcd's model
            for model in self.etcd.values():
                if not host.alive:
                    model.stop(host.id, "its machine went down")
                model.refresh(host)

    def _refresh_all(self) -> None:
        for host in self.hosts.values():
            self.refresh(host)

    def beat(self, host: Host) -> None:
        if host.runs and self.clock.seconds >= host.beat_due:
            host.beat_due = self.clock.seconds + EVERY
            host.presence.beat()
            while host.beside:
                host.beside.pop(0)()
            if isinstance(host.edges.space, SpaceWatch):
                host.edges.space.tick()
            host.publisher.work()

    def round(self, host: Host, *, kubelet: bool = True) -> Round | None:
        """One round of a machine's agent, whatever its pace; None if it died in the middle or does not run.

        Afterwards its kubelet does what it has to do, unless it is a little slow.
        """
        if not host.runs or host.in_round:
            return None
        host.in_round = True
        try:
            with full_disk() if host.disk_full else noted():
                round_ = run_round(host.edges, host.wanted)
        except AgentDied:
            self.agent_dies(host)
            return None
        finally:
            host.in_round = False
            if kubelet:
                self.refresh(host)
        host.round_ = round_
        if round_.restart_agent:
            self.agent_dies(host)
        if round_.end_machine:
            self.ends_itself(host)
        return round_

    def rounds(self, times: int = 1, seconds: float = 1.0) -> None:
        """Every machine has a round, one after the other, so many times."""
        for _ in range(times):
            for host in list(self.hosts.values()):
                self.beat(host)
                self.round(host)
            self.clock.advance(seconds)

    def run(self, seconds: float) -> None:
        """Let time pass; every agent keeps its own pace."""
        end = self.clock.seconds + seconds
        while True:
            running = [host for host in self.hosts.values() if host.runs and not host.in_round]
            next_round = min(running, key=lambda host: host.due, default=None)
            next_beat = min(running, key=lambda host: host.beat_due, default=None)
            if next_round is None or next_beat is None or min(next_round.due, next_beat.beat_due) > end:
                break
            if next_beat.beat_due <= next_round.due:
                self._at(next_beat.beat_due)
                self.beat(next_beat)
            else:
                self._at(next_round.due)
                self._paced(next_round)
        self._at(end)

    def _at(self, when: float) -> None:
        self.clock.advance(max(0.0, when - self.clock.seconds))

    def _paced(self, host: Host) -> None:
        host.in_round = True
        with full_disk() if host.disk_full else noted():
            pause = host.loop.once()
        host.in_round = False
        if host.loop.restart:
            self.agent_dies(host)
        if host.loop.leave:
            self.ends_itself(host)
            return
        host.began.append(self.clock.seconds)
        lately = sum(each > self.clock.seconds - 60 for each in host.began)
        assert lately < MOST_ROUNDS, f"{host.id} has {lately} rounds a minute:\n{self.story()}"
        host.due = self.clock.seconds + min([pause, *host.disks.wakes()])
        self.refresh(host)

    def until(self, condition: Callable[[], object], within: float = 60.0) -> float:
        """Let time pass until something is so; how many seconds that took."""
        began = self.clock.seconds
        while not condition():
            assert self.clock.seconds - began <= within, f"not within {within:.0f} s:\n{self.story()}"
            self.run(0.25)
        return self.clock.seconds - began

    # What a test asks.

    def write(self, key: str = "main") -> bool:
        """A user writes; the API, and so a user, is there only once creation is closed."""
        return not self.generation(key).open and self.etcd[key].write(next(self.written))

    def serving(self, key: str = "main") -> dict[str, Host]:
        """Members that run and follow a leader, by short name, with their machines."""
        found = self.etcd[key].progress()
        names = {each.name: each.short for etcd in self.wanted.etcd if etcd.key == key for each in etcd.members}
        return {names[each.name]: self.hosts[each.machine.id] for each in (found[1] if found else [])}

    def healthy(self, key: str = "main") -> bool:
        """Every member runs as a voter, creation is closed, in the store and on every mark."""
        etcd = self.wanted.etcd_cluster(key)
        assert etcd is not None
        if set(self.serving(key)) != {each.short for each in etcd.members} or self.generation(key).open:
            return False
        found = self.etcd[key].leader()
        assert found is not None
        state = found[0].db.state
        unused = self.generation(key).superseded
        marks = {each.mark for each in self.cloud.volumes() if each.etcd_cluster == key and each.id not in unused}
        return len(state.voters) == len(state.members) == len(etcd.members) and marks == {FORMED}

    def all_healthy(self) -> bool:
        return all(self.healthy(key) for key in self.etcd)

    def story(self) -> str:
        """Everything that helps to understand a failed test."""
        lines = [f"at {self.clock.seconds:.1f}"]
        for host in self.hosts.values():
            state = "frozen" if host.frozen else "runs" if host.alive else "dead"
            lines.append(f"{host.id} {host.machine.group} {state} {host.links()}: {host.sentence}")
        lines += [str(each) for each in self.cloud.volumes()]
        for key, model in self.etcd.items():
            lines.append(f"{key}: runs {[(p.name, m) for m, p in model.processes.items()]} exits {model.exits}")
            for process in model.processes.values():
                lines.append(f"  {process.name} known={process.known} {process.db.state}")
            lines.append(f"  {self.generation(key)}")
        return "\n".join(lines)
