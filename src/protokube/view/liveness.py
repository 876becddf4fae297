"""Which masters live, from reports of different ages: pure.

A lease in etcd proves that a master lives, and only who has a quorum sees leases. So the newest list of live masters
decides, until one of those masters reports later that it has no quorum: then the list is from before that, and nobody
knows. Each master that lives reports such a change within a minute or so, and who does not is not there.

Which list is the newest is told by the revision of etcd at which it was read: no clock of a machine can make the list
of a master that died look newer than that of one which saw its lease end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from protokube.view.published import Published

MARGIN = 30.0
"""Seconds for a lease that ends, a round, and a write that takes long."""
HIDDEN = 3600.0
"""Seconds by which the report of a machine that is gone may be older than the newest one, and is still shown."""
LIVE, NO_LEASE, CUT_OFF, SILENT, NO_QUORUM, UNKNOWN = (
    "live",
    "no live lease",
    "reports, no live lease",
    "silent since etcd lost its quorum",
    "reports, no quorum",
    "unknown",
)


def heard_within(report: Published) -> float:
    """Seconds within which this master, if it lives, has published that etcd lost its quorum: one write may fail."""
    return 2 * report.every + MARGIN


@dataclass(frozen=True, slots=True)
class Liveness:
    """Who lives, as far as the reports tell."""

    leases: Published | None
    """The report whose list of live masters counts now; None if none does."""
    lost_for: float | None = None
    """Seconds since a master reported that the quorum is lost; None if none does."""
    last: Published | None = None
    """The report with the newest list of live masters, whether it counts now or not."""
    newest: float = 0.0
    """When the newest report was made."""

    def state(self, report: Published) -> str:
        if self.leases is not None:
            if report.machine in (self.leases.live or ()):
                return LIVE
            # who says itself that it sees no quorum was heard after it lost its lease, or before it ever had one
            return CUT_OFF if report.live is None and not report.stale else NO_LEASE
        if report.live is None and not report.stale:
            return NO_QUORUM
        return SILENT if self.lost_for is not None and self.lost_for > heard_within(report) else UNKNOWN

    def is_alive(self, report: Published) -> bool:
        """Whether nothing says that it does not live."""
        return self.state(report) not in (NO_LEASE, SILENT)

    def was_live(self, machine: str) -> bool:
        """Whether the newest list of live masters, of whatever age, has this one."""
        return self.last is not None and machine in (self.last.live or ())


def judge(reports: Sequence[Published]) -> Liveness:
    """What the reports tell together."""
    named, newest = newest_list(reports), max((each.at for each in reports), default=0.0)
    lost = [
        each.lost_for or 0.0
        for each in reports
        if each.live is None and not each.stale and not each.boot and (named is None or _was_listed(each, named))
    ]
    if named is None or named.stale or lost:
        return Liveness(None, max(lost, default=None), named, newest)
    return Liveness(named, None, named, newest)


def newest_list(reports: Iterable[Published]) -> Published | None:
    """The report whose list of live masters was read last, by the revision of etcd where that is published."""
    lists = [each for each in reports if each.live is not None]
    latest = max(lists, key=lambda each: each.at, default=None)
    if latest is None or latest.leases is None:
        return latest
    cluster = latest.leases.cluster_id  # a cluster that was made again counts anew
    same = [
        (each.leases.revision, each.at, each) for each in lists if each.leases and each.leases.cluster_id == cluster
    ]
    return max(same, key=lambda each: each[:2])[2]


def _was_listed(report: Published, named: Published) -> bool:
    """It counted as live when that list was made, and has lost the quorum since."""
    return report.at > named.at and report.machine in (named.live or ())


def is_shown(report: Published, liveness: Liveness, in_use: Collection[str] = ()) -> bool:
    """Records of machines that are gone stay in the store: nothing deletes there. `in_use`: machines with a volume."""
    if report.machine in in_use or liveness.was_live(report.machine):
        return True
    return liveness.newest - report.at < HIDDEN
