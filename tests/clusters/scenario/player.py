"""What can happen to a cluster, step by step, and what is asked of it in the end.

Each `do_` is one kind of step of a history. Its two numbers choose among what there is at that time, so that every step
means something wherever it stands, and a history stays one when steps are left out.
"""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from clusters.scenario.checks import Watch, demand
from clusters.scenario.cluster import Stage
from clusters.scenario.copies import DiskCopy
from clusters.scenario.edges import AgentDied
from clusters.scenario.host import Host
from protokube.host import Content, Job
from protokube.members.generation import FORMATTING
from protokube.providers.volumes import Volume

Step = tuple[str, int, int]
GROUPS = ("master-a", "master-b", "master-c")
PAUSES = (0.2, 1.0, 2.0, 5.0, 30.0)
MOST_MACHINES = 5
HEALS_WITHIN = 60
CALLS = (
    "list_volumes", "attach", "write_mark", "write_epoch", "run", "find", "read", "apply", "replace", "status",
    "members", "add_learner", "remove", "promote", "ensure_started", "create_volume", "sync", "survey", "release",
)  # fmt: skip


@dataclass
class Player:
    """Carries a history out on a stage."""

    stage: Stage
    watch: Watch
    for_a_person: set[str] = field(default_factory=set)
    """Volumes that nobody but a person can say anything about."""
    copies: dict[str, list[DiskCopy]] = field(default_factory=dict)
    """Snapshots, by volume."""
    removed: set[tuple[str, str]] = field(default_factory=set)
    """Members that somebody removed from etcd's list: the second time is taken to be meant."""
    deep: int = 0
    draw: random.Random = field(default_factory=lambda: random.Random(0))

    def hosts(self, which: Callable[[Host], bool] = lambda _host: True) -> list[Host]:
        return [each for each in self.stage.hosts.values() if which(each)]

    def one(self, number: int, which: Callable[[Host], bool]) -> Host | None:
        found = self.hosts(which)
        return found[number % len(found)] if found else None

    def play(self, step: Step) -> None:
        name, first, second = step
        getattr(self, f"do_{name.replace(' ', '_')}")(first, second)
        self.watch.after_event()

    def round(self, host: Host) -> None:
        """The kubelet of that machine wakes up somewhere in the middle of it, and now and then is slow afterwards."""
        self.stage.beat(host)
        if host.fuse.left < 0:
            host.fuse.set(self.draw.randrange(24), lambda: self.stage.refresh(host))
        round_ = self.stage.round(host, kubelet=self.draw.random() < 0.7)
        if not host.fuse.call:
            host.fuse.left = -1
        self.watch.after_round(host, round_)

    def do_world(self, first: int, second: int) -> None:
        """Which kind of cluster it is, was said when the stage was made: see `replay`."""

    def do_round(self, first: int, second: int) -> None:
        if host := self.one(first, lambda each: each.runs):
            self.round(host)
        self.stage.clock.advance(PAUSES[second % 3])

    def do_all(self, first: int, second: int) -> None:
        hosts = self.hosts(lambda each: each.runs)
        first %= len(hosts) or 1
        for host in hosts[first:] + hosts[:first]:
            self.round(host)
        self.stage.clock.advance(PAUSES[second % len(PAUSES)])

    def do_boot(self, first: int, second: int) -> None:
        if len(self.hosts(lambda each: each.alive)) < MOST_MACHINES:
            self.stage.boot(GROUPS[first % 3], wrong_by=3600.0 if second == 7 else 0.0)

    def do_kill(self, first: int, second: int) -> None:
        if host := self.one(first, lambda each: each.alive):
            self.stage.kill(host)

    def do_declare(self, first: int, second: int) -> None:
        """Mostly one that is gone; now and then one that lives, or sleeps."""
        alive = second % 4 == 0
        if host := self.one(first, lambda each: alive or not each.runs):
            self.stage.declare_dead(host)

    def do_replace(self, first: int, second: int) -> None:
        if (host := self.one(first, lambda each: each.alive)) and len(self.hosts(lambda each: each.alive)) <= 3:
            self.stage.kill(host)
            self.stage.replace_machine(host)

    def do_freeze(self, first: int, second: int) -> None:
        if host := self.one(first, lambda each: each.runs):
            self.stage.freeze(host)

    def do_thaw(self, first: int, second: int) -> None:
        if host := self.one(first, lambda each: each.frozen):
            self.stage.thaw(host, clock_slept=0.0 if second % 2 else 3.0)

    def do_reboot(self, first: int, second: int) -> None:
        if host := self.one(first, lambda each: each.runs):
            self.stage.reboot(host)

    # In the middle of a round.

    def inside(self, first: int, second: int, action: Callable[[Host], None]) -> None:
        """At a passage of this very round, or at the next call of a certain kind, whenever that comes."""
        host = self.one(first, lambda each: each.runs)
        if host is None or self.deep:
            return

        def act() -> None:
            host.fuse.left = -1
            self.deep += 1
            try:
                action(host)
            finally:
                self.deep -= 1

        if first % 2:
            host.fuse.set(second % 2, act, CALLS[second % len(CALLS)])
        else:
            host.fuse.set(second, act)
        self.round(host)
        self.stage.clock.advance(1.0)

    def do_crash(self, first: int, second: int) -> None:
        def die(host: Host) -> None:
            raise AgentDied

        self.inside(first, second, die)

    def do_interleave(self, first: int, second: int) -> None:
        """The kubelets and the other agents are faster than this round."""

        def others(host: Host) -> None:
            self.stage.refresh(host)
            for other in self.hosts(lambda each: each.runs and each is not host):
                self.round(other)

        self.inside(first, second, others)

    def do_die_inside(self, first: int, second: int) -> None:
        def die(host: Host) -> None:
            self.stage.kill(host)
            raise AgentDied

        self.inside(first, second, die)

    def do_lose_inside(self, first: int, second: int) -> None:
        self.inside(first, second, lambda host: self.stage.declare_dead(host))

    def do_silence_inside(self, first: int, second: int) -> None:
        """From one call on, nothing that is asked of the far sides is answered, though all of it is done."""

        def lose(_host: Host) -> None:
            self.do_cloud_lost(0, 0)
            self.do_dns_lost(0, 0)
            self.do_store_lost(0, 0)
            self.do_etcd_lost(0, 0)

        self.inside(first, second, lose)
        self.do_repair(0, 0)

    def do_sleep_inside(self, first: int, second: int) -> None:
        """Paused in the middle of a round, taken over by others, and woken up there."""

        def sleep(host: Host) -> None:
            self.stage.freeze(host)
            self.stage.declare_dead(host)
            if len(self.hosts(lambda each: each.runs)) < MOST_MACHINES:
                self.stage.boot(host.machine.group)
            for _ in range(4):
                for other in self.hosts(lambda each: each.runs):
                    self.round(other)
                self.stage.clock.advance(2.0)
            self.stage.thaw(host, clock_slept=8.0 if first % 4 == 1 else 0.0)

        self.inside(first, second, sleep)

    # Far sides.

    def do_cloud(self, first: int, second: int) -> None:
        self.stage.cloud.down = not self.stage.cloud.down

    def do_cloud_lost(self, first: int, second: int) -> None:
        self.stage.cloud.answers_lost = not self.stage.cloud.answers_lost

    def do_slow(self, first: int, second: int) -> None:
        """The cloud takes its time to detach a volume, until a repair."""
        self.stage.cloud.detaches_slowly = True

    def do_dns(self, first: int, second: int) -> None:
        self.stage.dns.unreachable = not self.stage.dns.unreachable

    def do_dns_lost(self, first: int, second: int) -> None:
        self.stage.dns.answers_lost = not self.stage.dns.answers_lost

    def do_store(self, first: int, second: int) -> None:
        self.stage.store.down = not self.stage.store.down

    def do_store_lost(self, first: int, second: int) -> None:
        self.stage.store.answers_lost = not self.stage.store.answers_lost

    def do_etcd_lost(self, first: int, second: int) -> None:
        for model in self.stage.etcd.values():
            model.answers_lost = not model.answers_lost

    def do_repair(self, first: int, second: int) -> None:
        stage = self.stage
        stage.cloud.down = stage.cloud.answers_lost = stage.dns.unreachable = stage.dns.answers_lost = False
        stage.store.down = stage.store.answers_lost = False
        stage.cloud.tell_the_truth()
        stage.finish_detaching()
        for model in stage.etcd.values():
            model.answers_lost = False
            model.lingering.clear()
        for host in stage.hosts.values():
            host.disks.answer_again()
        for platter in stage.platters.by_volume.values():
            platter.mend()
        for host in stage.hosts.values():
            host.disks.blind = False
            host.disk_full, host.disks.stuck = False, False
            host.disks.seconds, host.disks.fails = (lambda _job: 0.0), (lambda _job: "")

    def do_break(self, first: int, second: int) -> None:
        """A file system gives up, or its disk fails, hangs or is full, everywhere or on one machine, until a repair."""
        volumes = self.stage.cloud.volumes()
        if not volumes:
            return
        volume = volumes[first % len(volumes)]
        platter, holder = self.stage.platters[volume.id], self.stage.hosts.get(volume.attached_to or "")
        match second % 8:
            case 0 | 1 | 2:
                platter.option = ("ro", "emergency_ro", "shutdown", "abort")[first % 4]
            case 3:
                platter.errors += 1
            case 4:
                platter.unwritable = "input/output error"
            case 5:
                platter.broken_on |= {holder.id} if holder else set()
            case 6:
                platter.hangs = True
                if holder is not None:
                    holder.disks.stuck = first % 2 == 0
            case _:
                platter.free = 0

    def do_wear(self, first: int, second: int) -> None:
        """The file system of one disk gives up again and again, while time passes in between."""
        volumes = self.stage.cloud.volumes()
        if volumes and not self.deep:
            for _ in range(2 + second % 2):
                self.stage.platters[volumes[first % len(volumes)].id].option = "emergency_ro"
                for _ in range(5):
                    self.do_all(first, 2)

    def do_remove(self, first: int, second: int) -> None:
        """`etcdctl member remove`, as far as etcd lets a person: those that are left have to be a majority."""
        key = list(self.stage.etcd)[first % len(self.stage.etcd)]
        found = self.stage.etcd[key].progress()
        if found is None or not self.is_formed:
            return
        voters = [each for each in found[0].db.state.members if not each.learner and each.name]
        chosen = voters[second % len(voters)]
        active = {each.db.member for each in found[1]} & {each.id for each in voters} - {chosen.id}
        if (key, chosen.name) not in self.removed and 2 * len(active) > len(voters) - 1:
            self.removed.add((key, chosen.name))
            self.stage.etcd[key].remove_by_hand(chosen.name)

    def do_delete(self, first: int, second: int) -> None:
        volumes = self.stage.cloud.volumes()
        if volumes:
            self.stage.delete_volume(volumes[first % len(volumes)].id)

    @property
    def is_formed(self) -> bool:
        """Until creation is closed nothing was acknowledged to anybody, and what is lost may be founded anew."""
        return not any(self.stage.generation(key).open for key in self.stage.etcd)

    def unmounted(self, number: int) -> Volume | None:
        mounted = {volume for host in self.hosts() for volume in host.disks.table}
        volumes = [each for each in self.stage.cloud.volumes() if each.id not in mounted]
        return volumes[number % len(volumes)] if volumes else None

    def do_wipe(self, first: int, second: int) -> None:
        """Only where nobody has it mounted; a disk does not lose its blocks under a running etcd."""
        volume = self.unmounted(first)
        if self.is_formed and volume is not None and self.stage.platters[volume.id].content is Content.EXT4:
            self.wipe(volume)

    def wipe(self, volume: Volume) -> None:
        platter = self.stage.platters[volume.id]
        platter.wipe()
        self.for_a_person.add(volume.id)
        self.watch.wiped(volume.id)
        platter.carried_data &= bool(volume.mark)

    def do_forget(self, first: int, second: int) -> None:
        """Somebody deletes etcd's data, and leaves our identity: under a running etcd, or while nobody looks."""
        volumes = self.stage.cloud.volumes()
        if not volumes or not self.is_formed:
            return
        volume = volumes[first % len(volumes)]
        holder = self.stage.hosts.get(volume.attached_to or "")
        if holder is None or not holder.links() or holder.is_guarded(self.stage.cluster_of(volume)):
            self.forget(volume.id)

    def forget(self, volume: str) -> None:
        folder = self.stage.platters[volume].folder
        if folder is not None and (folder / "var").exists():
            shutil.rmtree(folder / "var")
            self.stage._refresh_all()

    def do_linger(self, first: int, second: int) -> None:
        """A kubelet hangs: what it should stop runs on; and now and then nobody can tell whether it does."""
        if host := self.one(first, lambda each: each.runs):
            for model in self.stage.etcd.values():
                model.lingering ^= {host.id}
            host.disks.blind = second % 5 == 0

    def do_restart(self, first: int, second: int) -> None:
        """The agent's process is replaced between two rounds, and has forgotten everything."""
        if host := self.one(first, lambda each: each.runs):
            self.stage.agent_dies(host)

    def do_hide(self, first: int, second: int) -> None:
        """The tags that make a volume ours are taken away, and may come back."""
        volumes = self.stage.cloud.volumes()
        if volumes and not self.stage.hidden:
            self.stage.hide(volumes[first % len(volumes)].id)

    def do_show(self, first: int, second: int) -> None:
        for volume in list(self.stage.hidden.values()):
            self.stage.show(volume.id)
            others = [each for each in self.stage.cloud.volumes() if each.id != volume.id]
            if any(self.stage.member_of(each) == self.stage.member_of(volume) for each in others):
                self.for_a_person.add(volume.id)  # its member got another one meanwhile
            beside = {each.id for each in others if volume.attached_to and each.attached_to == volume.attached_to}
            if beside:
                self.for_a_person |= beside | {volume.id}  # or its machine did, which serves one of them

    def do_raise(self, first: int, second: int) -> None:
        """The provider knows a greater epoch than the disk: it was put back from a copy, in place."""
        volumes = self.stage.cloud.volumes()
        if volumes and (volume := volumes[first % len(volumes)]).epoch:
            self.stage.change_tags(volume.id, epoch=volume.epoch + 2)
            self.for_a_person.add(volume.id)

    def do_copy(self, first: int, second: int) -> None:
        """Somebody makes a snapshot of a disk, mounted or not."""
        there = [each for each in self.stage.cloud.volumes() if self.stage.platters[each.id].folder is not None]
        if there:
            volume = there[first % len(there)].id
            self.copies.setdefault(volume, []).append(self.stage.copy_disk(volume))

    def do_put_back(self, first: int, second: int) -> None:
        """Somebody restores a snapshot in place. One that no record tells from the newest data is in nobody's power."""
        volume = self.unmounted(first)
        copies = self.copies.get(volume.id, []) if volume else []
        if volume is None or not copies or not self.is_formed:
            return
        copied = copies[second % len(copies)]
        if self.stage.is_told_apart(volume, copied):
            self.stage.put_back(volume.id, copied)
            self.for_a_person.add(volume.id)
            self.watch.wiped(volume.id)

    def do_untag(self, first: int, second: int) -> None:
        """A tool takes the tags of one volume away, or of all; they are not put back."""
        volumes = self.stage.cloud.volumes()
        for volume in volumes if second % 4 == 0 else volumes[first % (len(volumes) or 1) :][:1]:
            self.stage.cloud.strip_tags(volume.id)

    def do_swap(self, first: int, second: int) -> None:
        """Somebody mixes up the tags of two volumes of one etcd cluster."""
        volumes = [each for each in self.stage.cloud.volumes() if each.tagged and each.etcd_cluster == "main"]
        if len(volumes) > 1:
            one, other = volumes[first % len(volumes)], volumes[(first + 1) % len(volumes)]
            self.stage.change_tags(one.id, member=other.member)
            self.stage.change_tags(other.id, member=one.member)

    def do_lie(self, first: int, second: int) -> None:
        """Lists lack a volume or all of them, say that nobody has one, or come from an old replica."""
        cloud, volumes = self.stage.cloud, self.stage.cloud.volumes()
        cloud.consistent = False
        one = {each.id for each in volumes[first % (len(volumes) or 1) :][:1]}
        match second % 4:
            case 0:
                cloud.left_out = one
            case 1:
                cloud.left_out = {each.id for each in volumes}
            case 2:
                cloud.nobodys = one
            case _:
                cloud.stale = volumes

    def do_clone(self, first: int, second: int) -> None:
        """Somebody restores a snapshot onto the wrong volume."""
        volume = self.unmounted(first)
        others = [each for each in self.copies if volume is not None and each != volume.id]
        if volume is not None and others and self.is_formed:
            self.stage.put_back(volume.id, self.copies[others[second % len(others)]][-1])
            self.for_a_person.add(volume.id)
            self.watch.wiped(volume.id)

    def do_disaster(self, first: int, second: int) -> None:
        """All machines go at once, two disks lose what was on them, in different ways; the third is back late."""
        if not self.is_formed:
            return
        for host in self.hosts(lambda each: each.alive):
            self.stage.kill(host)
            self.stage.declare_dead(host)
        for number, volume in enumerate(self.stage.cloud.volumes()[:2]):
            how = (first + number * second) % 3
            if self.stage.platters[volume.id].content is not Content.EXT4:
                continue
            if how == 0:
                self.forget(volume.id)
            else:
                self.wipe(volume)
            if how == 2 or second % 2:
                self.do_strip(number, 0)
        for group in GROUPS[:2]:
            self.stage.boot(group)
        for _ in range(8):
            self.do_all(first, 2)
        self.stage.boot(GROUPS[2])

    def do_strip(self, first: int, second: int) -> None:
        volumes = self.stage.cloud.volumes()
        if volumes:
            volume, mark = volumes[first % len(volumes)].id, volumes[first % len(volumes)].mark
            self.watch.strip(volume)
            platter = self.stage.platters[volume]
            if mark.startswith(FORMATTING):
                self.for_a_person.add(volume)  # nothing is left that says that its file system is ours
            platter.carried_data &= platter.content is Content.EXT4  # a blank one without marks is a new disk

    def do_jobs(self, first: int, second: int) -> None:
        host = self.one(first, lambda each: each.alive)
        if host is None:
            return
        numbers = itertools.count(second)

        def slow(_job: Job) -> float:
            return (0.0, 1.5, 4.0, float("inf"))[next(numbers) % 4]

        def fail(_job: Job) -> str:
            return "the test wants it so" if next(numbers) % 3 == 0 else ""

        host.disks.seconds, host.disks.fails = (slow, host.disks.fails) if second % 2 else (host.disks.seconds, fail)

    def do_full(self, first: int, second: int) -> None:
        if host := self.one(first, lambda each: each.alive):
            host.disk_full = not host.disk_full

    def do_write(self, first: int, second: int) -> None:
        self.stage.write(list(self.stage.etcd)[first % len(self.stage.etcd)])

    # The end.

    def heal(self) -> None:
        """Whatever is broken outside is mended; then the cluster has to mend itself."""
        self.do_repair(0, 0)
        stage = self.stage
        stage.call_disks_repaired()
        for host in self.hosts():
            host.fuse.set(-1, lambda: None)
        for host in self.hosts(lambda each: each.frozen):
            stage.thaw(host)
        gone = {each for each, life in stage.cloud._lives.items() if life.declared_dead}
        for host in self.hosts(lambda each: not each.alive):
            stage.declare_dead(host)
        self.do_show(0, 0)
        usable = [each for each in self.hosts(lambda each: each.runs) if each.id not in gone]
        spare = len(self.for_a_person & {each.id for each in stage.cloud.volumes()})  # each may keep a machine busy
        for number in range(3 + spare - len(usable)):
            stage.boot(GROUPS[number % 3])
        stage._refresh_all()
        for _ in range(HEALS_WITHIN):
            if self.is_well():
                break
            for host in self.hosts(lambda each: each.runs):
                self.round(host)
            self.watch.after_event()
            stage.clock.advance(2.0)
        demand(self.is_well(), f"it does not heal:\n{stage.story()}")
        for key in stage.etcd:
            if self.can_heal(key) and not stage.generation(key).open:
                demand(stage.write(key), "it heals and takes no writes")
        self.watch.after_event()

    def can_heal(self, key: str) -> bool:
        """Whether a majority of the voters, as they were last agreed on, still has its data; or may still found."""
        model = self.stage.etcd[key]
        there = {each.id for each in self.stage.cloud.volumes()} - self.for_a_person
        intact = {
            each.member for each in model.dbs.values() if each.file.exists() and _volume_of(each.file.parts) in there
        }
        newest = max((each.state for each in model.dbs.values()), key=lambda state: state.sequence, default=None)
        if newest is None or newest.history == 0:
            founders = set(self.stage.generation(key).founders.values())
            return self.stage.generation(key).open and len(founders & there) >= 2
        return 2 * len(intact & newest.voters) > len(newest.voters)

    def is_well(self) -> bool:
        return all(self.is_well_in(key) for key in self.stage.etcd if self.can_heal(key))

    def is_well_in(self, key: str) -> bool:
        unused = self.stage.generation(key).superseded
        observed = [each for each in self.stage.cloud.volumes() if each.id not in unused]
        volumes = [each for each in observed if self.stage.cluster_of(each) == key]
        if self.for_a_person & {each.id for each in volumes} or not self.can_heal("main"):
            return self.stage.etcd[key].progress() is not None  # a person is asked about the rest
        return self.stage.healthy(key) and all(each.epoch == self.stage.identity(each.id).epoch for each in volumes)


def _volume_of(parts: Sequence[str]) -> str:
    """Of a file below `platters/vol-00000001-2`."""
    return parts[parts.index("platters") + 1].rpartition("-")[0]
