"""Which masters live, from reports of different ages: pure.

A lease in etcd proves that a master lives, and only who has a quorum sees leases. So the newest report that names live
masters decides, until one of those masters reports later that it has no quorum: then the list is from before that, and
nobody knows. Each master that lives reports such a change within a minute or so, and who does not is not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from protokube.view.published import Published

HEARD = 90.0
"""Seconds within which a master that lives has published that etcd lost its quorum: a minute, a round and a write."""
HIDDEN = 3600.0
"""Seconds after which the report of a master that is not among the live ones is no longer shown."""
LIVE, NO_LEASE, CUT_OFF, SILENT, NO_QUORUM, UNKNOWN = (
    "live",
    "no live lease",
    "reports, no live lease",
    "silent since etcd lost its quorum",
    "reports, no quorum",
    "unknown",
)


@dataclass(frozen=True, slots=True)
class Liveness:
    """Who lives, as far as the reports tell."""

    leases: Published | None
    """The report whose list of live masters counts now; None if none does."""
    lost_for: float | None = None
    """Seconds since a master reported that the quorum is lost; None if none does."""

    def state(self, report: Published) -> str:
        if self.leases is not None:
            if report.machine in (self.leases.live or ()):
                return LIVE
            # who says itself that it sees no quorum was heard after it lost its lease, or before it ever had one
            return CUT_OFF if report.live is None and not report.stale else NO_LEASE
        if report.stale:
            return UNKNOWN
        if report.live is None:
            return NO_QUORUM
        return SILENT if self.lost_for is not None and self.lost_for > HEARD else UNKNOWN

    def is_alive(self, report: Published) -> bool:
        """Whether nothing says that it does not live."""
        return self.state(report) not in (NO_LEASE, SILENT)


def judge(reports: Sequence[Published]) -> Liveness:
    """What the reports tell together."""
    newest_first = sorted(reports, key=lambda each: each.at, reverse=True)
    named = next((each for each in newest_first if each.live is not None), None)
    lost = [
        each.lost_for or 0.0
        for each in reports
        if each.live is None and not each.stale and (named is None or _was_listed(each, named))
    ]
    if named is None or named.stale or lost:
        return Liveness(None, max(lost, default=None))
    return Liveness(named)


def _was_listed(report: Published, named: Published) -> bool:
    """It counted as live when that list was made, and has lost the quorum since."""
    return report.at > named.at and report.machine in (named.live or ())


def is_shown(report: Published, liveness: Liveness) -> bool:
    """Records of machines that are gone stay in the store: nothing deletes there."""
    return liveness.is_alive(report) or report.agent.age < HIDDEN
