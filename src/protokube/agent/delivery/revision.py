"""Take the revision that is in force: the step of the round.

The record is read once a minute, at once if a key in etcd changes by which an operator announces a new one, and in each
round while a rollout concerns this master. To run another revision, the agent writes it to its own disk and restarts
itself: a restart at any moment is safe anyway, and then nothing of the former revision is left in memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from protokube.agent.cache import Confirmed, Missed, StepCache, is_recent
from protokube.agent.delivery import health, present, withdrawn
from protokube.agent.delivery.decide import (
    Action,
    Complete,
    EndTurn,
    Free,
    GoBack,
    Leave,
    Nothing,
    Person,
    Stop,
    Switch,
    TakeTurn,
    Wait,
    decide,
)
from protokube.agent.round import Round
from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.host import Format
from protokube.launch import revisions
from protokube.launch.change import fixed, needs_other_machine, restarts
from protokube.launch.machine import MasterConfig
from protokube.launch.revisions import Revision
from protokube.launch.rollout import Failure, Rollout, State, Turn
from protokube.launch.versions import jumps

STEP = "revision"
RESTART = "see whether the kubelet runs and can start it; its log has the reason"
EVERY, SOON = 60.0, 2.0
"""Seconds between two reads of the record; and between two rounds while a rollout concerns this master."""
LOOK = 120.0
"""Seconds between two comparisons of processes with their manifests, which read all of /proc."""
FLAPS = 30.0
"""Seconds for which something must run to count as running: shorter than a restart's longest back-off is no success."""
LISTS, GONE = 4, 60.0
"""How many consecutive complete lists must lack the machine whose turn it is, and for how long; with a provider whose
reads are consistent, one is enough."""


@dataclass(slots=True)
class RevisionCache(StepCache):
    record: Confirmed[Rollout | None] | None = None
    hint: str | None = None
    wanted: Revision | None = None
    """The wanted revision, once it was read."""
    withdrawn: bool = False
    """What only the former revision had was removed."""
    looked: float | None = None
    """When processes were last compared with their manifests."""
    seen: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()
    """What differed then; and what differed the time before, too."""
    down: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By what does not come up: since when it does not run, and when that was last seen."""
    missed: dict[Turn, Missed] = field(default_factory=dict)
    """For the present turn: how long its machine has been in no list."""


def sync(round_: Round) -> None:
    if not round_.wanted.revision:
        return  # made without revisions
    cache = round_.edges.cache.of(RevisionCache)
    if not cache.withdrawn:
        withdrawn.sync(round_)
        cache.withdrawn = True
    record = _record(round_)
    if record is None:
        return
    if record.turn is None:
        _report_drift(round_)
    action = decide(record, Sight(round_, record))
    if not isinstance(action, Nothing | Person):
        round_.within(SOON)
    apply(round_, record, action)


def _report_drift(round_: Round) -> None:
    """Twice in a row: a component that was just restarted for another reason is none."""
    cache, now = round_.edges.cache.of(RevisionCache), round_.edges.clock.monotonic()
    if not is_recent(cache.looked, now, LOOK):
        cache.looked = now
        try:
            found = tuple(each.what for each in health.drift(round_) if not each.ended)
        except TryLater:  # a disk that does not answer is reported elsewhere
            found = ()
        cache.drift, cache.seen = tuple(each for each in found if each in cache.seen), found
    for what in cache.drift:
        round_.report.warn(STEP, "it runs with other arguments than its manifest has", what, RESTART)


def _record(round_: Round) -> Rollout | None:
    """As it was read lately, or now if something may have changed; None without one."""
    cache, now = round_.edges.cache.of(RevisionCache), round_.edges.clock.monotonic()
    hint, known = round_.edges.presence.rollout_hint(), cache.record
    settled = known is not None and (
        known.value is None or (known.value.state is State.DONE and known.value.wanted == round_.wanted.revision)
    )
    if known is not None and settled and hint in (None, cache.hint) and is_recent(known.when, now, EVERY):
        return known.value
    record = revisions.read_rollout(round_.edges.store, round_.wanted.cluster)
    cache.record = Confirmed(record, now)
    cache.hint = hint if hint is not None else cache.hint
    return record


class Sight:
    """What this master sees in one round, looked up when it is asked for."""

    def __init__(self, round_: Round, record: Rollout) -> None:
        self._round, self._record = round_, record
        self._trouble: health.Trouble | None = None

    @property
    def machine(self) -> str:
        return self._round.edges.me.id

    @property
    def mine(self) -> int:
        return self._round.wanted.revision

    @property
    def former(self) -> int | None:
        found = present.read(self._round.edges.inside(present.FORMER))
        return found.number if found else None

    def restarts(self) -> tuple[str, ...]:
        return restarts(self._present, wanted_revision(self._round, self._record.wanted).master)

    def forbidden(self) -> tuple[str, ...]:
        before, after = self._present, wanted_revision(self._round, self._record.wanted).master
        return (*fixed(before, after), *jumps(before, after), *health.unreadable(self._round, before, after))

    def misfit(self) -> bool:
        return needs_other_machine(self._round.wanted, wanted_revision(self._round, self._record.wanted).master)

    @property
    def made_for(self) -> int:
        return self._round.edges.launched

    def idle(self) -> bool:
        return health.idle(self._round) and self._round.waited(f"{STEP} idle") >= health.ENDED

    def stays(self) -> str:
        if self._round.edges.end_machine is None:
            return "nothing replaces a machine that ends"
        return health.absent(self._round) or self.others()

    def no_way_back(self) -> str:
        former = present.read(self._round.edges.inside(present.FORMER))
        try:
            return next(health.unreadable(self._round, self._round.wanted, former.master), "") if former else ""
        except TryLater:  # no member answers; an older etcd that cannot read the data does not start, and says so
            return ""

    @cached_property
    def _present(self) -> MasterConfig:
        found = present.read(self._round.edges.inside(present.PRESENT))
        if found is None:
            raise Refused("the present revision of this master cannot be read", hint=f"see /{present.PRESENT}")
        return found.master

    @cached_property
    def _outdated(self) -> tuple[str, ...]:
        return health.outdated(self._round, self._present, wanted_revision(self._round, self._record.wanted).master)

    def outdated(self) -> str:
        return ", ".join(self._outdated)

    def others(self) -> str:
        working = tuple(each for each in self.restarts() if each not in self._outdated)
        return health.others(self._round, working)

    def own(self) -> str:
        self._trouble = next(health.troubles(self._round), None)
        return str(self._trouble) if self._trouble else ""

    def broken(self) -> str:
        if self._trouble is None:
            return ""
        lasted = self._round.waited(f"{STEP} {self.mine} comes up")
        return health.broken(self._round, self._trouble, lasted, self._down(self._trouble))

    def _down(self, trouble: health.Trouble) -> float:
        """Seconds since it does not run. One that ends again and again runs for moments between: these do not count."""
        known, now = self._round.edges.cache.of(RevisionCache).down, self._round.edges.clock.monotonic()
        since, last = known.get(trouble.what, (now, now))
        if now - last > FLAPS:
            since = now
        if trouble.ended:
            known[trouble.what] = (since, now)
        return now - since if trouble.what in known else 0.0

    def turn_is_gone(self) -> bool:
        turn, edges = self._record.turn, self._round.edges
        cache, now = edges.cache.of(RevisionCache), edges.clock.monotonic()
        known, cache.missed = cache.missed.get(turn) if turn else None, {}  # a failed list restarts the count
        if turn is None or turn.machine in (edges.presence.live() or ()):
            return False  # without asking the provider
        machines = {each.id for each in edges.machines.list_machines()}
        if turn.machine in machines or edges.me.id not in machines:
            return False
        missed = Missed(known.times + 1 if known else 1, known.since if known else now)
        cache.missed = {turn: missed}
        return edges.volumes.consistent or (missed.times >= LISTS and now - missed.since >= GONE)

    def elected(self) -> bool:
        return self._round.edges.presence.elected()

    def behind(self) -> str:
        numbers = self._round.edges.presence.revisions()
        if numbers is None:
            return health.UNSEEN
        late = sorted(each.name for each in numbers if each.revision != self._record.wanted)
        if late:
            return f"{', '.join(late)} {'does' if len(late) == 1 else 'do'} not run it yet"
        return health.absent(self._round)


def wanted_revision(round_: Round, number: int) -> Revision:
    """Read once: a revision never changes. Refused if it is missing or damaged."""
    cache = round_.edges.cache.of(RevisionCache)
    if cache.wanted is None or cache.wanted.number != number:
        try:
            cache.wanted = revisions.read_revision(round_.edges.store, round_.wanted.cluster, number)
        except InvalidRequest as why:
            raise Refused(why.message, saw=why.saw, hint=why.hint) from why
    return cache.wanted


def apply(round_: Round, record: Rollout, action: Action) -> None:
    edges, me, now = round_.edges, round_.edges.me, round_.edges.clock.now()
    match action:
        case Nothing():
            return
        case Wait(why):
            round_.waiting(STEP, "", why)
        case Person(why, hint):
            round_.report.needs_a_person(STEP, why, hint=hint)
        case TakeTurn(names, leaves):
            why = "another machine takes its place" if leaves else f"restarts {', '.join(names)}"
            turn = Turn(machine=me.id, name=me.name, at=now, revision=round_.wanted.revision)
            _write(round_, record, record.taken(turn, why))
            round_.report.done(STEP, f"takes revision {record.wanted}: {why}")
        case Switch() | Leave() if any(isinstance(job, Format) for job, _ in edges.disks.running()):
            round_.waiting(STEP, "", f"revision {record.wanted}: a disk is being formatted")
        case Switch() | Leave():
            _go_on(round_, record, leaves=isinstance(action, Leave))
        case EndTurn(text):
            _write(round_, record, record.ended(now, me.name, text))
            round_.report.done(STEP, text)
        case Stop(text):
            failure = Failure(machine=me.id, name=me.name, revision=round_.wanted.revision, text=text)
            _write(round_, record, record.stopped(failure, now))
            round_.report.done(STEP, f"revision {failure.revision} stopped: {text}")
        case GoBack():
            former = present.go_back(edges.root)
            round_.restart_agent = True
            round_.report.done(STEP, f"returns to revision {former.number}")
        case Free(name):
            _write(round_, record, record.ended(now, me.name, f"{name} does not exist any more; its turn is over"))
            round_.report.done(STEP, f"ended the turn of {name}, which does not exist any more")
        case Complete():
            _write(round_, record, record.completed(now, me.name))
            round_.report.done(STEP, f"all masters run revision {record.wanted}")


def _go_on(round_: Round, record: Rollout, *, leaves: bool) -> None:
    """As the wanted revision: this agent, or the machine that takes the place of this one."""
    round_.end_machine, round_.restart_agent = leaves, not leaves
    if leaves:
        round_.report.done(STEP, f"ends this machine: another one takes its place, for revision {record.wanted}")
        return
    present.take(round_.edges.root, wanted_revision(round_, record.wanted))
    round_.report.done(STEP, f"goes on as revision {record.wanted}")


def _write(round_: Round, seen: Rollout, wanted: Rollout) -> None:
    """Over exactly the record that was decided on. Changed, a TryLater, if another writer was faster."""

    def checked(known: Rollout) -> Rollout:
        if known != seen:
            raise TryLater("the rollout record has just been changed by another master")
        return wanted

    edges = round_.edges
    edges.cache.of(RevisionCache).record = None
    revisions.change_rollout(edges.store, round_.wanted.cluster, checked)
