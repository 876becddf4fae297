"""The reconcile round of the dns-controller: observe, decide, confirm, write, report.

A round decides from the whole cache and keeps no state that matters: killed at any moment and started anywhere else, it
continues where it was. A change of an object triggers a round at once; otherwise one runs only when a recheck is due.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from protokube.controllers.backoff import ceiling
from protokube.controllers.dns import Problem
from protokube.controllers.dns.decide.desired import desired
from protokube.controllers.dns.decide.routing import Routed, route
from protokube.controllers.dns.read.watching import Seen
from protokube.controllers.dns.write.confirm import Look, Objects
from protokube.controllers.dns.write.zones import Zones
from protokube.controllers.dns.write.zonework import Outcome, Policy, Sight, ZoneWork
from protokube.controllers.guard import guarded
from protokube.errors import Refused, TryLater
from protokube.records.owners import Want
from protokube.records.zones import Zone

log = logging.getLogger(__name__)

GATHER = 0.05
"""Seconds for which changes are gathered into one round: one write for a pod that changes three times."""
LONGEST = 60.0
SOON = 1.0
RELIST_FIRST, RELIST_MOST = 10.0, 600.0
"""Back-off of relists while a list still lacks an object that exists: the first wait and the longest, in seconds."""


class Watches(Protocol):
    def look(self) -> Seen: ...

    def relist(self) -> None: ...


class Leads(Protocol):
    def leading(self) -> bool: ...

    def holder(self) -> str:
        """The current leader, as far as we know."""


@dataclass(slots=True, kw_only=True)
class Round:
    """What one round observed and did."""

    waits: str = ""
    """Why the round did nothing at all."""
    seen: Seen | None = None
    routed: Routed | None = None
    zones: list[Outcome] = field(default_factory=list)
    left_alone: Sequence[tuple[Zone, str]] = ()
    """Zones that we do not manage, each with the reason."""
    ahead: Sequence[Zone] = ()
    """Zones whose records will be needed once the objects are listed."""
    look_again_at: float | None = None

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.routed.problems if self.routed else ()


Tell = Callable[[Round], None]


class Controller:
    """One thread calls `run`; any thread may call `wake`."""

    def __init__(
        self,
        *,
        watching: Watches,
        election: Leads,
        zones: Zones,
        policy: Policy,
        objects: Callable[[], Objects],
        tells: Sequence[Tell] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._watching, self._election, self._zones, self._policy = watching, election, zones, policy
        self._objects, self._tells, self._clock = objects, tuple(tells), clock
        self._works: dict[Zone, ZoneWork] = {}
        self._relists, self._relist_at = 0, float("-inf")
        self._next: float | None = None
        self._woken = threading.Event()

    def wake(self) -> None:
        self._woken.set()

    def run(self, stop: threading.Event) -> None:
        before = ""
        while not stop.is_set():
            self._woken.clear()
            pause = LONGEST
            wrong = guarded("dns-controller", self._step)
            if wrong and wrong != before:
                log.warning("a round failed and is retried: %s", wrong)
            before = wrong
            if wrong:
                pause = SOON
            elif self._next is not None:
                pause = min(max(self._next - self._clock(), 0.0), LONGEST)
            if self._woken.wait(pause):
                stop.wait(GATHER)

    def _step(self) -> None:
        done = self.round()
        self._report(done)
        self._read_ahead(done.ahead)

    def _read_ahead(self, zones: Sequence[Zone]) -> None:
        """Read each zone while the objects are still listed, once: the round that needs it reports what fails here."""
        for zone in zones:
            if zone not in self._works:
                with suppress(TryLater, Refused):
                    self._work(zone).view.current(self._clock())

    def _report(self, done: Round) -> None:
        self._next = done.look_again_at
        for tell in self._tells:
            tell(done)

    def round(self) -> Round:
        now, seen = self._clock(), self._watching.look()
        if not self._election.leading():
            self._forget()
            holder = self._election.holder()
            return Round(seen=seen, waits=f"{holder} leads" if holder else "nobody leads yet", look_again_at=now + SOON)
        try:
            managed = self._zones.managed(now)  # before the objects are listed too: both then load at the same time
        except (TryLater, Refused) as why:
            return Round(seen=seen, waits=f"the zones cannot be listed: {why.message}", look_again_at=now + 10 * SOON)
        if not seen.ready:
            return Round(seen=seen, waits=seen.trouble, ahead=managed.zones)
        routed = route(
            desired(seen.sources.values(), seen.nodes.values()),
            managed,
            reserved=seen.agents.reserved,
            members=seen.agents.members,
        )
        done = Round(seen=seen, routed=routed, left_alone=managed.left)
        look = Look(self._objects(), seen.sources, seen.nodes, seen.agents.external)
        sight = Sight(
            look=look, whole=seen.whole, trouble=seen.trouble, inherit=seen.agents.left, hands_off=seen.agents.reserved
        )
        self._works = {zone: work for zone, work in self._works.items() if zone in routed.wants}
        for zone, wants in routed.wants.items():
            done.zones.append(self._settle(zone, wants, sight, now))
        self._relist(any(doubt.lists_stale for outcome in done.zones for doubt in outcome.doubts.values()), now)
        missed = self._zones.miss() if routed.without_zone else None
        times = [seen.agents.ends_at, missed, *(outcome.look_again_at for outcome in done.zones)]
        done.look_again_at = min((each for each in times if each is not None), default=None)
        return done

    def _settle(self, zone: Zone, wants: Sequence[Want], sight: Sight, now: float) -> Outcome:
        """Reconcile one zone; one that cannot be opened does not delay the others."""
        try:
            work = self._work(zone)
        except (TryLater, Refused) as why:
            return Outcome(zone=zone, trouble=f"it cannot be opened: {why.message}", look_again_at=now + 10 * SOON)
        return work.settle(wants, sight, now)

    def _work(self, zone: Zone) -> ZoneWork:
        if zone not in self._works:
            self._works[zone] = ZoneWork(zone, self._zones.open(zone), self._policy, self._election.leading)
        return self._works[zone]

    def _relist(self, lists_stale: bool, now: float) -> None:
        """Relist with back-off while the lists stay wrong: each complete list is expensive for the API server."""
        if not lists_stale:
            self._relists, self._relist_at = 0, now
        elif now >= self._relist_at:
            self._watching.relist()
            self._relists += 1
            self._relist_at = now + ceiling(self._relists, first=RELIST_FIRST, most=RELIST_MOST)

    def _forget(self) -> None:
        for work in self._works.values():
            work.forget()
