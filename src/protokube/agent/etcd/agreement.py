"""Compare the data of etcd's members in a background thread, since asking all of them takes time; rounds report it.

`/health` cannot detect diverged data. An alarm changes no data: the masters of the minority are removed from the DNS
names of the API, and the report asks for a person. All masters are removed if no side has a majority, or if a member
outside of the majority is ahead of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from protokube.agent.cache import is_recent
from protokube.agent.round import Round
from protokube.etcd import Etcd
from protokube.etcd.compare import compare
from protokube.members.agreement import Disagree, Suspicion
from protokube.notes import AGREEMENT

STEP = AGREEMENT
EVERY, SUSPICIOUS = 30.0, 2.0
"""Seconds between two comparisons; the second after a difference, and before the first comparison."""
RECENT = 120.0
"""Seconds for which a comparison stays valid."""
HANGS = 300.0
"""Seconds after which a hanging comparison is reported."""


class AgreementWatch:
    """Compares the members of each etcd cluster periodically."""

    def __init__(
        self,
        etcd: Mapping[str, Etcd],
        members: Mapping[str, list[str]],
        changed: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._etcd, self._members, self._changed = etcd, members, changed
        self._suspicions = {key: Suspicion() for key in members}
        self._clock = clock
        self._compared: dict[str, float] = {}

    def alarms(self) -> Mapping[str, Disagree]:
        """By etcd cluster, where the members differed several times in a row."""
        return {key: each.alarm for key, each in self._suspicions.items() if each.alarm is not None}

    def suspected(self, key: str) -> bool:
        return self._suspicions[key].differed > 0

    def compared(self, key: str) -> bool:
        return is_recent(self._compared.get(key), self._clock(), RECENT)

    def look(self) -> bool:
        """Compare each etcd cluster once; returns whether any differed."""
        differed, before = False, dict(self.alarms())
        for key, names in self._members.items():
            seen = compare(self._etcd[key], names)
            differed |= isinstance(seen, Disagree)
            self._suspicions[key] = self._suspicions[key].feed(seen)
            self._compared[key] = self._clock()
        if before != self.alarms():
            self._changed()
        return differed

    def work(self) -> float:
        """One comparison; returns the seconds until the next. Run by a thread of its own."""
        return SUSPICIOUS if self.look() else EVERY


def sync(round_: Round) -> None:
    for key, alarm in round_.edges.agreement.alarms().items():
        round_.report.needs_a_person(
            STEP,
            f"its members do not hold the same data: {alarm}",
            key,
            "nothing was changed; see `protokube etcd members`, decide which side is right, and replace the others"
            + ("; keep the disks of all: the smaller side may be the right one" if alarm.further else ""),
        )


def out_of_service(round_: Round) -> set[str]:
    """Machines to remove from the names of the API: they hold members on the wrong side."""
    wrong = {name for alarm in round_.edges.agreement.alarms().values() for name in alarm.out_of_service}
    names = {(etcd.key, each.short): each.name for etcd in round_.wanted.etcd for each in etcd.members}
    return {
        volume.attached_to
        for volume in round_.volumes or ()
        if volume.attached_to and names.get((volume.etcd_cluster, volume.member)) in wrong
    }
