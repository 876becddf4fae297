"""Do the members agree? Asked beside the rounds, since asking everybody takes time; told by the rounds.

`/health` cannot say it. On an alarm no data is touched: masters of the minority side leave the names of the API, and a
person is told. All masters leave if no side has a majority, or if a member outside of it came further than it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from protokube.agent.world import Turn
from protokube.etcd import Etcd
from protokube.etcd.compare import compare
from protokube.members.agreement import Disagree, Suspicion

STEP = "agreement"
EVERY, SUSPICIOUS = 30.0, 2.0
"""Seconds between two comparisons; between two once they differed."""


class Watching:
    """Compares the members of each etcd cluster again and again."""

    def __init__(
        self, etcd: Mapping[str, Etcd], members: Mapping[str, list[str]], changed: Callable[[], None] = lambda: None
    ) -> None:
        self._etcd, self._members, self._changed = etcd, members, changed
        self._suspicions = {key: Suspicion() for key in members}
        self._compared: set[str] = set()
        self._stop = threading.Event()

    def alarms(self) -> Mapping[str, Disagree]:
        """By etcd cluster, where the members differed several times running."""
        return {key: each.alarm for key, each in self._suspicions.items() if each.alarm is not None}

    def suspected(self, key: str) -> bool:
        return self._suspicions[key].differed > 0

    def compared(self, key: str) -> bool:
        return key in self._compared

    def look(self) -> bool:
        """One comparison of each; whether any differed."""
        differed, before = False, dict(self.alarms())
        for key, names in self._members.items():
            seen = compare(self._etcd[key], names)
            differed |= isinstance(seen, Disagree)
            self._suspicions[key] = self._suspicions[key].feed(seen)
            self._compared.add(key)
        if before != self.alarms():
            self._changed()
        return differed

    def run(self) -> None:
        pause = SUSPICIOUS  # an older copy of a disk waits for the first comparison
        while not self._stop.wait(pause):
            pause = SUSPICIOUS if self.look() else EVERY

    def stop(self) -> None:
        self._stop.set()


def sync(turn: Turn) -> None:
    for key, alarm in turn.world.agreement.alarms().items():
        turn.report.needs_a_person(
            STEP,
            f"its members do not hold the same data: {alarm}",
            key,
            "nothing was changed; see `protokube etcd members`, decide which side is right, and replace the others"
            + ("; keep the disks of all: the smaller side may be the right one" if alarm.further else ""),
        )


def out_of_service(turn: Turn) -> set[str]:
    """The machines whose API servers must not be found: holders of members on the wrong side."""
    wrong = {name for alarm in turn.world.agreement.alarms().values() for name in alarm.out_of_service}
    names = {(etcd.key, each.short): each.name for etcd in turn.wanted.etcd for each in etcd.members}
    return {
        volume.attached_to
        for volume in turn.volumes or ()
        if volume.attached_to and names.get((volume.etcd_cluster, volume.member)) in wrong
    }
