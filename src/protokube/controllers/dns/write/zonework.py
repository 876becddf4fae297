"""Reconcile one zone: plan, confirm removals, apply, and report the outcome.

Only the current leader may write, and a process that was frozen may wake up in the middle of this. So leadership is
checked before every write. A write that still slips through fails at the provider's compare-and-swap, since the new
leader has changed the records.
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
"""Back-off for a zone that could not be read or written: the first wait and the longest, in seconds."""
FEW = 3
"""How many objects are read when the removal cap holds many values back."""
TRIES = 3
"""Attempts to list and plan again in one round after somebody else wrote to the zone."""


class NotLeading(TryLater):
    """Another replica leads now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The user's settings."""

    owner: str
    ttl: int = 60
    grace: float = 30.0
    forced: bool = False
    dry_run: bool = False
    """Plan and report, and write nothing."""
    adopt: frozenset[str] = frozenset()
    """Names at which values without a mark become ours, if an object asks for the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What the round observed of the cluster."""

    look: Look
    whole: bool
    """Every list was complete, and every watch is healthy."""
    trouble: str = ""
    inherit: frozenset[str] = frozenset()
    """Names that the agents gave up."""
    hands_off: frozenset[str] = frozenset()


@dataclass(slots=True, kw_only=True)
class Outcome:
    """The outcome of one round for one zone."""

    zone: Zone
    applied: list[Unit] = field(default_factory=list)
    """Written; in a dry run, what would have been written."""
    refused: list[tuple[Unit, str]] = field(default_factory=list)
    """Rejected by the provider in this round or an earlier one; retried later."""
    left: tuple[Left, ...] = ()
    doubts: dict[Owned, Doubt] = field(default_factory=dict)
    owned: int = 0
    trouble: str = ""
    look_again_at: float | None = None


class ZoneWork:
    """The state of one zone between rounds: all of it is safe to lose."""

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
        """Reset the state, because another replica leads."""
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
            self.view.forget()  # whether the write was carried out is unknown
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
                self.view.forget()  # our cache of the zone may be the cause
            return

    def _planned(self, wants: Sequence[Want], sight: Sight, now: float, outcome: Outcome) -> SharedPlan:
        removal = Removal(
            allowed=sight.whole, why=sight.trouble, now=now, grace=self._policy.grace, absent_since=self._absent,
            forced=self._policy.forced,
        )  # fmt: skip
        looked: set[Owned] = set()
        outcome.doubts = {}
        while True:  # a value that stays can change what else is removed, and every removal must be confirmed
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
        """Write batch by batch; return the rejected units, which do not block the others."""
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
        """Whether the agents left the value and the user adopted its name: no confirmation is needed."""
        return line.mark.by == INHERITED and line.name in self._policy.adopt


def _passed(plan: SharedPlan) -> Sequence[Owned]:
    """Marks that pass to another object and need confirmation. Those of the agents do not: the value itself stays, and
    its new object is confirmed when it is removed."""
    return [line for line in plan.passed if line.mark.by != INHERITED]


def _held(plan: SharedPlan, removal: Removal) -> Sequence[Owned]:
    """A few of the values that the removal cap holds back: enough to detect a wrong list."""
    if plan.removals or not removal.allowed:
        return ()
    held = [line for line in plan.absent if removal.grace_ends(line) <= removal.now]
    return held[:: max(1, len(held) // FEW)][:FEW]


def _doubt(look: Look, line: Owned, absent_for: float) -> Doubt | None:
    """Confirm one removal; an object that cannot be read may exist, so its value stays."""
    try:
        return look.doubt(line, absent_for)
    except TryLater as why:
        return Doubt(f"{line.mark.by} cannot be asked for: {why.message}")
