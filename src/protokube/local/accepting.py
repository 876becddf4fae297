"""Accept an older copy of a member's disk: a person's deliberate way, for one use.

Written into the generation record, where the master that holds the disk finds it. The figures have to be those of the
disk as its holder reports it: another copy, put in place meanwhile, is not accepted by it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.local.view_values import ClusterView, DiskView
from protokube.members.generation import Accepted, decode, encode
from protokube.members.older import Older
from protokube.store import Store, layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An older copy, and what a person says about it."""

    volume: str
    member: str
    older: Older
    accepted: Accepted

    def lines(self, *, done: bool) -> list[str]:
        told = [f"{self.volume} is an older copy of the disk of {self.member}: {self.older}"]
        if done:
            return [*told, f"accepted: {self.member} starts with this data in the next round of its holder"]
        return [*told, "what was written after the copy was made may be lost", "hint: --yes accepts it"]

    def tree(self, *, done: bool) -> dict[str, Any]:
        return {"volume": self.volume, "member": self.member, **asdict(self.older), "accepted": done}


def find_older(view: ClusterView, disk: DiskView, figures: Accepted) -> Found:
    """What the holder reports of the disk. InvalidRequest if it has other figures, Refused if it is no older copy."""
    reported = [
        home.older
        for agent in view.agents
        if agent.host == disk.attached_to
        for home in agent.homes
        if home.volume == disk.id and home.older is not None
    ]
    if not reported:
        raise Refused(
            f"nobody reports {disk.id} as an older copy of the disk of {disk.member}",
            saw=f"phase {disk.phase or 'unknown'}",
            hint=f"protokube explain volume {disk.id}",
        )
    (older,) = reported
    on_disk = Accepted(epoch=older.disk.epoch, term=older.disk.term, commit=older.disk.commit)
    if figures != on_disk:
        raise InvalidRequest(
            f"{disk.id} has other figures than those named",
            saw=f"on the disk: {older.disk}",
            want=f"epoch {figures.epoch}, term {figures.term}, commit {figures.commit}",
            hint="name what is on the disk, if that is the copy you mean",
        )
    return Found(volume=disk.id, member=disk.member, older=older, accepted=figures)


def carry_out(store: Store, cluster: str, key: str, volume: str, figures: Accepted) -> None:
    path = layout.etcd_generation(cluster, key)
    stored = store.read(path)
    record = decode(stored.data)
    if record is None:
        raise TryLater(f"the generation record of {key} cannot be read", hint="restore it from a backup of the store")
    store.replace(path, encode(record.with_accepted(volume, figures)), stored.version)
