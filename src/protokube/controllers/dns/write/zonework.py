"""One zone: plan, look again before anything goes, apply, and say what became of it.

Whoever writes must lead at that very moment: a process that was frozen may wake up in the middle of this. It asks
before every call, and what still slips through is turned away by the provider: the new leader has changed the records.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from protokube.controllers.backoff import ceiling
from protokube.controllers.dns.write.confirm import Doubt, Look
from protokube.controllers.dns.write.writing import Closed, Writing
from protokube.controllers.dns.write.zones import ZoneView
from protokube.errors import Refused, TryLater
from protokube.providers.dns import Stale
from protokube.records.batches import Unit, changes_of
from protokube.records.guard import Left, Removal
from protokube.records.onename import INHERITED
from protokube.records.owners import Owned, Want
from protokube.records.quarantine import Quarantine
from protokube.records.shared import SharedPlan, plan_shared
from protokube.records.zones import Zone

FIRST, MOST = 1.0, 60.0
"""Seconds until a zone is tried again that could not be read or written: the first time, and at most."""
FEW = 3
"""Of many values that would go and are held, so many are looked at."""
TRIES = 3
"""How often in a row a zone is read and planned anew because somebody else wrote to it meanwhile."""


class NotLeading(TryLater):
    """Another one writes now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the user decides."""

    owner: str
    ttl: int = 60
    grace: float = 30.0
    forced: bool = False
    dry_run: bool = False
    """Plan and tell, and stop there."""
    adopt: frozenset[str] = frozenset()
    """Names at which values that nobody marked become ours, if anything is asked for there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What the sources say in this round."""

    look: Look
    whole: bool
    """Every list was complete, and is being kept up."""
    trouble: str = ""
    inherit: frozenset[str] = frozenset()
    """Names that the agents left."""
    hands_off: frozenset[str] = frozenset()


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What became of one zone in one round."""

    zone: Zone
    applied: list[Unit] = field(default_factory=list)
    """Carried out; in a dry run, what would have been."""
    refused: list[tuple[Unit, str]] = field(default_factory=list)
    """Turned away by the provider, now or some time ago: tried again later."""
    left: tuple[Left, ...] = ()
    doubts: dict[Owned, Doubt] = field(default_factory=dict)
    owned: int = 0
    trouble: str = ""
    look_again_at: float | None = None


class ZoneWork:
    """What is remembered of a zone: all of it may be forgotten without harm."""

    def __init__(
        self,
        zone: Zone,
        view: ZoneView,
        policy: Policy,
        leads: Callable[[], bool],
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.zone, self.view, self._policy, self._leads, self._jitter = zone, view, policy, leads, jitter
        self.forget()

    def forget(self) -> None:
        """Somebody else writes from now on."""
        self.view.forget()
        self._absent: dict[Owned, float] = {}
        self._quarantine = Quarantine()
        self._failures, self._trouble, self._wait_until = 0, "", float("-inf")
        self._writing = Writing(self._jitter)

    def settle(self, wants: Sequence[Want], sight: Sight, now: float) -> Outcome:
        if now < self._wait_until:
            return Outcome(zone=self.zone, trouble=self._trouble, look_again_at=self._wait_until)
        outcome = Outcome(zone=self.zone)
        try:
            self._settle(wants, sight, now, outcome)
        except (TryLater, Refused) as why:
            self.view.forget()  # whether it was carried out, nobody knows
            self._failures += 1
            wait = ceiling(self._failures, first=FIRST, most=MOST) * (0.5 + self._jitter() / 2)
            self._trouble, self._wait_until = why.message, now + wait
            outcome.trouble, outcome.look_again_at = self._trouble, self._wait_until
        else:
            self._failures, self._trouble = 0, ""
        return outcome

    def _settle(self, wants: Sequence[Want], sight: Sight, now: float, outcome: Outcome) -> None:
        for left in reversed(range(TRIES)):
            plan = self._planned(wants, sight, now, outcome)
            self._absent = dict(plan.absent)
            outcome.left, outcome.owned = plan.left, plan.owned
            due, waiting = self._quarantine.due(plan.units, now)
            outcome.refused = list(waiting)
            try:
                refused = self._apply(due, outcome)
            except Closed as why:
                outcome.refused += why.refused
                self._quarantine = self._quarantine.after(plan.units, why.refused, now)
                raise
            except Stale:
                self.view.forget()
                if not left:
                    raise
                continue
            outcome.refused += refused
            self._quarantine = self._quarantine.after(plan.units, refused, now)
            times = (plan.look_again_at, self._quarantine.look_again_at, self.view.due_at)
            outcome.look_again_at = min(each for each in times if each is not None)
            if refused:
                self.view.forget()  # what is wrong may be what we believe to be there
            return

    def _planned(self, wants: Sequence[Want], sight: Sight, now: float, outcome: Outcome) -> SharedPlan:
        removal = Removal(
            allowed=sight.whole, why=sight.trouble, now=now, grace=self._policy.grace, absent_since=self._absent,
            forced=self._policy.forced,
        )  # fmt: skip
        looked: set[Owned] = set()
        outcome.doubts = {}
        while True:  # what is kept can change what else goes, and nothing goes that was not looked at
            plan = self._plan(wants, sight, removal, now)
            going = (*plan.removals, *plan.replaced, *_passed(plan), *(() if looked else _held(plan, removal)))
            unseen = [line for line in going if line not in looked and not self._is_given(line)]
            looked.update(unseen)
            asked = ((line, _doubt(sight.look, line, now - plan.absent.get(line, now))) for line in unseen)
            doubts = {line: doubt for line, doubt in asked if doubt}
            if not doubts:
                return plan
            outcome.doubts |= doubts
            kept = {line: doubt.why for line, doubt in outcome.doubts.items()}
            removal = replace(removal, kept=kept, absent_since=plan.absent)

    def _plan(self, wants: Sequence[Want], sight: Sight, removal: Removal, now: float) -> SharedPlan:
        return plan_shared(
            self.view.current(now), wants, owner=self._policy.owner, ttl=self._policy.ttl, removal=removal,
            adopt=self._policy.adopt, inherit=sight.inherit, hands_off=sight.hands_off,
        )  # fmt: skip

    def _apply(self, units: Sequence[Unit], outcome: Outcome) -> list[tuple[Unit, str]]:
        """Batch by batch; what is turned away for what is in it is told, and stops nothing else."""
        if self._policy.dry_run:
            outcome.applied += units
            return []
        return self._writing.carry_out(units, self.view.dns.split, lambda part: self._write(part, outcome))

    def _write(self, units: Sequence[Unit], outcome: Outcome) -> None:
        if not self._leads():
            raise NotLeading("another replica leads now")
        changes = changes_of(units)
        self.view.dns.apply(changes)
        self.view.applied(changes)
        outcome.applied += units

    def _is_given(self, line: Owned) -> bool:
        """What the agents left goes without a question where a person says so."""
        return line.mark.by == INHERITED and line.name in self._policy.adopt


def _passed(plan: SharedPlan) -> Sequence[Owned]:
    """Of what the agents left nobody is asked: the values stay, and who has them now is asked for when they go."""
    return [line for line in plan.passed if line.mark.by != INHERITED]


def _held(plan: SharedPlan, removal: Removal) -> Sequence[Owned]:
    """Where too many would go, a few of them: enough to see whether a list is wrong."""
    if plan.removals or not removal.allowed:
        return ()
    held = [line for line in plan.absent if removal.ripe_at(line) <= removal.now]
    return held[:: max(1, len(held) // FEW)][:FEW]


def _doubt(look: Look, line: Owned, absent_for: float) -> Doubt | None:
    """An object that cannot be asked for may be there."""
    try:
        return look.doubt(line, absent_for)
    except TryLater as why:
        return Doubt(f"{line.mark.by} cannot be asked for: {why.message}")
