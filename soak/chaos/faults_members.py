"""Manual changes of etcd's member list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from clusters.real import until
from soak.chaos.fault import Fault
from soak.chaos.field import Field

CHANGING = 60.0
"""Seconds for a change of the member list: etcd allows one only after all members have been connected for 5 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedMember(Fault):
    """A member is removed from etcd's list, as with `etcdctl member remove`.

    The first time it rejoins by itself. The second time within a day is taken to be intended, and the person, who did
    not intend it, adds it again.
    """

    kind: ClassVar[str] = "removed-member"
    alone: ClassVar[bool] = True
    heals: ClassVar[float] = 240.0
    causes: ClassVar[tuple[str, ...]] = (r"taken to be meant",)

    def apply(self, field: Field) -> None:
        etcd, name = field.cluster.client(timeout=5.0), f"etcd-{self.member}"

        found = until(lambda: [each for each in etcd.members() if each.name == name], f"{name} is listed", CHANGING)
        field.saved[self] = found[0].peer_urls[0]

        def remove() -> bool:
            etcd.remove(found[0].id)
            return True

        until(remove, f"{name} is removed from etcd's list", CHANGING, every=1.0)

    def mend(self, field: Field) -> None:
        etcd, url = field.cluster.client(timeout=5.0), field.saved[self]

        def add() -> bool:
            if not any(url in each.peer_urls for each in etcd.members()):
                etcd.add_learner(url)
            return True

        until(add, f"etcd-{self.member} is added to etcd's list", CHANGING, every=1.0)
