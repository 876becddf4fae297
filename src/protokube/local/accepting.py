"""Accept a disk that the agents refuse: a deliberate, one-time override by a person.

The override is written to the state store, where the master that holds the disk reads it. For an older copy it names
epoch, term and commit, which must match what the holder reports: a different copy that is swapped in meanwhile is not
accepted.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.members import diskfaults
from protokube.members.diskfaults import FaultRecord
from protokube.members.generation import Accepted, decode, encode
from protokube.members.older_copy import Older
from protokube.store import NotThere, Store, layout
from protokube.view.cluster import ClusterView
from protokube.view.values import DiskView


@dataclass(frozen=True, slots=True, kw_only=True)
class OlderCopy:
    """An older copy of a member's disk, and the override that accepts it."""

    volume: str
    member: str
    older: Older
    accepted: Accepted

    def lines(self, *, done: bool) -> list[str]:
        found = [f"{self.volume} is an older copy of the disk of {self.member}: {self.older}"]
        if done:
            return [*found, f"accepted: {self.member} starts with this data in the next round of its holder"]
        return [*found, "what was written after the copy was made may be lost", "hint: --yes accepts it"]

    def tree(self, *, done: bool) -> dict[str, Any]:
        return {"volume": self.volume, "member": self.member, **asdict(self.older), "accepted": done}

    def accept(self, store: Store, cluster: str) -> None:
        key, _, _ = self.member.partition("/")
        path = layout.etcd_generation(cluster, key)
        stored = store.read(path)
        record = decode(stored.data)
        if record is None:
            raise TryLater(
                f"the generation record of {key} cannot be read", hint="restore it from a backup of the store"
            )
        store.replace(path, encode(record.with_accepted(self.volume, self.accepted)), stored.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairedDisk:
    """A disk with recorded faults that a person declares repaired."""

    volume: str
    member: str
    record: FaultRecord

    def lines(self, *, done: bool) -> list[str]:
        found = [f"{self.volume}, the disk of {self.member}, broke {len(self.record.faults)} times:"]
        found += [f"  on {each.host}: its file system {each.why}" for each in self.record.faults]
        if done:
            return [*found, "forgotten: its holder checks and mounts it in its next round"]
        return [*found, "hint: --yes forgets that, and it is checked and mounted again"]

    def tree(self, *, done: bool) -> dict[str, Any]:
        faults = [asdict(each) for each in self.record.faults]
        return {"volume": self.volume, "member": self.member, "faults": faults, "accepted": done}

    def accept(self, store: Store, cluster: str) -> None:
        key, _, _ = self.member.partition("/")
        path = layout.etcd_disk_faults(cluster, key, self.volume)
        store.replace(path, diskfaults.encode(FaultRecord()), store.read(path).version)


def find_broken(disk: DiskView, store: Store, cluster: str) -> RepairedDisk:
    """The recorded faults of the disk. Refused if there are none."""
    key, _, _ = disk.member.partition("/")
    try:
        record = diskfaults.decode(store.read(layout.etcd_disk_faults(cluster, key, disk.id)).data)
    except NotThere:
        record = None
    if record is None or not record.faults:
        raise Refused(
            f"nothing is recorded about {disk.id} having broken",
            saw=f"phase {disk.phase or 'unknown'}",
            hint=f"protokube explain volume {disk.id}",
        )
    return RepairedDisk(volume=disk.id, member=disk.member, record=record)


def find_older(view: ClusterView, disk: DiskView, figures: Accepted) -> OlderCopy:
    """What the holder reports of the disk. InvalidRequest if the figures differ, Refused if it is not an older copy."""
    reported = [
        mounted.older
        for agent in view.agents
        if agent.host == disk.attached_to
        for mounted in agent.mounted
        if mounted.volume == disk.id and mounted.older is not None
    ]
    if not reported:
        raise Refused(
            f"no agent reports {disk.id} as an older copy of the disk of {disk.member}",
            saw=f"phase {disk.phase or 'unknown'}",
            hint=f"protokube explain volume {disk.id}",
        )
    (older,) = reported
    on_disk = Accepted(epoch=older.disk.epoch, term=older.disk.term, commit=older.disk.commit)
    if figures != on_disk:
        raise InvalidRequest(
            f"{disk.id} has other figures than those given",
            saw=f"on the disk: {older.disk}",
            want=f"epoch {figures.epoch}, term {figures.term}, commit {figures.commit}",
            hint="name what is on the disk, if that is the copy you mean",
        )
    return OlderCopy(volume=disk.id, member=disk.member, older=older, accepted=figures)
