"""Actions that several scenarios share: kill and replace machines, restore disks, and read the outcome."""

from __future__ import annotations

import os

from clusters.scenario.cluster import Stage
from clusters.scenario.copies import DiskCopy
from clusters.scenario.host import Host
from protokube.members.generation import Accepted
from protokube.members.generation import encode as encode_generation
from protokube.store import layout


def take_over(stage: Stage, member: str) -> Host:
    """Its machine dies and a new one takes the disk: the epoch rises."""
    host = stage.holder_of(member)
    stage.kill(host)
    new = stage.replace_machine(host)
    stage.until(stage.healthy)
    return new


def power_off(stage: Stage, *members: str) -> None:
    for member in members:
        host = stage.holder_of(member)
        stage.kill(host)
        stage.declare_dead(host)


def attach_by_hand(stage: Stage, member: str, host: Host) -> str:
    """Somebody attaches the volume of a dead machine to one that has its own already; the volume's id."""
    power_off(stage, member)
    volume = stage.volume_of(member)
    stage.cloud.attach(volume, host.machine)
    stage.beside.add(volume)
    return volume


def boot(stage: Stage, *members: str) -> list[Host]:
    return [stage.boot(f"master-{member}") for member in members]


def restore_while_down(stage: Stage, member: str, copied: DiskCopy) -> None:
    """Its machine is dead; somebody restores the snapshot in place; a new machine comes up."""
    volume = stage.volume_of(member)
    power_off(stage, member)
    stage.put_back(volume, copied)
    boot(stage, member)


def copy_within_the_window(stage: Stage, member: str) -> DiskCopy:
    """A copy that neither epoch nor raft mark tells from the original, which goes on without any record of that."""
    stage.run(61)  # the mark of the last minute was just recorded
    copied = stage.copy_disk(stage.volume_of(member))
    assert all(stage.write() for _ in range(3))
    volume = next(each for each in stage.cloud.volumes() if each.id == stage.volume_of(member))
    assert not stage.is_told_apart(volume, copied)
    return copied


def refusals(stage: Stage) -> set[str]:
    return {
        note.text
        for host in stage.hosts.values()
        if host.runs and host.round_ is not None
        for note in host.round_.report.person
    }


def asides(stage: Stage, member: str) -> list[str]:
    folder = stage.platters[stage.volume_of(member)].folder
    assert folder is not None
    return sorted(name for _, folders, files in os.walk(folder) for name in (*folders, *files) if ".aside-" in name)


def started_old(stage: Stage) -> list[str]:
    return stage.etcd["main"].started_old


def remove_by_hand(stage: Stage, member: str) -> int:
    """`etcdctl member remove`; the id that was removed."""
    return stage.etcd["main"].remove_by_hand(f"etcd-{member}")


def add_by_hand(stage: Stage, member: str, *, learner: bool = True) -> int:
    """`etcdctl member add`."""
    etcd = stage.wanted.etcd[0].member(member)
    assert etcd is not None
    return stage.etcd["main"].add_by_hand(etcd.peer_url, learner=learner)


def remove_the_one_that_came_furthest(stage: Stage) -> None:
    """Copies that no record tells from the original are put in the place of the others' disks; then b is removed."""
    volumes = {member: stage.volume_of(member) for member in "ac"}
    copies = {member: stage.copy_disk(volume) for member, volume in volumes.items()}
    epochs = {member: stage.cloud.find(volume).epoch for member, volume in volumes.items()}
    assert all(stage.write() for _ in range(1000))
    power_off(stage, "a", "b", "c")
    for path in stage.store.inner.list_paths(f"{stage.wanted.cluster}/etcd/main/raft"):
        stage.store.inner.put(path, b"lost")
    for member, volume in volumes.items():
        stage.put_back(volume, copies[member])
        stage.change_tags(volume, epoch=epochs[member])
    boot(stage, "a", "c")
    stage.until(lambda: len(stage.serving()) == 2)
    stage.etcd["main"].acknowledged.clear()  # the restored copies lost these writes, not the agents
    stage.etcd["main"].started_old.clear()
    remove_by_hand(stage, "b")
    boot(stage, "b")


def waits(stage: Stage) -> set[str]:
    """What agents wait for."""
    return {
        note.text
        for host in stage.hosts.values()
        if host.runs and host.round_ is not None
        for note in host.round_.report.waits
    }


def panicked(stage: Stage, host: Host) -> None:
    """The copy has panicked, and its agent had no round since."""
    for _ in range(100):
        stage.round(host)
        if stage.etcd["main"].panics:
            return
        stage.clock.advance(0.1)
    raise AssertionError("it does not panic")


def refused_after_a_panic(stage: Stage, host: Host) -> str:
    """The other follower is cut off as soon as the copy has panicked; why the copy is refused then."""
    panicked(stage, host)
    stage.freeze(stage.holder_of("c"))
    stage.until(lambda: any("is an older copy" in each for each in refusals(stage)))
    (reason,) = (each for each in refusals(stage) if "is an older copy" in each)
    return reason


def accept(stage: Stage, volume: str, figures: Accepted) -> None:
    """What `protokube etcd accept` writes."""
    path = layout.etcd_generation(stage.wanted.cluster, "main")
    stored = stage.store.inner.read(path)
    stage.store.inner.replace(
        path, encode_generation(stage.generation().with_accepted(volume, figures)), stored.version
    )
