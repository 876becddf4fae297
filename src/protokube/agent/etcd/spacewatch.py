"""Watch this master's etcd members for alarms, and run the maintenance jobs that clear them, in background threads.

Without an alarm this costs one status call to the own member every 30 s: etcd reports the alarms of all members there.
Jobs are slow: a member that is being defragmented answers nothing for minutes, and a round must not wait for it. So
each job has a thread of its own, and a later round collects its result; a thread that ends without a result is reported
as a bug.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from protokube.agent.edges import Clock
from protokube.agent.maintenance import Job, Own, Sight
from protokube.errors import Refused, TryLater
from protokube.etcd import MaintainedEtcd, Status
from protokube.etcd.prefix_sizes import biggest
from protokube.members.prefix_sizes import Share
from protokube.members.space import OLD_ENOUGH
from protokube.members.space_values import Sample

EVERY, ALARMED = 30.0, 2.0
"""Seconds between two observations; the second while an alarm is raised."""
FRESH = 15.0
"""Seconds for which an observation of an alarm is fresh enough to act on."""
HANGS = 180.0
"""Seconds after which a hanging observation is reported: a call to a disk that hangs has no deadline."""
TRIES = 3
"""Attempts per alarm to find which keys fill an etcd: reading them is expensive."""
SHOWN = 3
"""Number of the largest prefixes that are reported."""


@dataclass(slots=True)
class _Watched:
    """In-process state about one etcd cluster; safe to lose."""

    sight: Sight | None = None
    due: float = 0.0
    samples: list[tuple[float, int]] = field(default_factory=list)
    cluster_id: int = 0
    shares: tuple[Share, ...] | None = None
    tries: int = 0
    job: Job | None = None
    jobs_ended: int = 0


def in_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="etcd maintenance", daemon=True).start()


class SpaceWatch:
    """Implements Maintenance: observes the members that this master serves, and runs their jobs."""

    def __init__(
        self,
        etcd: Mapping[str, MaintainedEtcd],
        clock: Clock,
        changed: Callable[[], None] = lambda: None,
        spawn: Callable[[Callable[[], None]], None] = in_thread,
    ) -> None:
        self.etcd = etcd
        self._clock, self._changed, self._spawn = clock, changed, spawn
        self._own: Mapping[str, Own] = {}
        self._watched = {key: _Watched() for key in etcd}

    # Called by the rounds.

    def hold(self, own: Mapping[str, Own]) -> None:
        """Set the members that this master serves now, by etcd cluster."""
        self._own = dict(own)

    def sight(self, key: str) -> Sight | None:
        """The last observation, if it is fresh."""
        seen = self._watched[key].sight
        lasts = FRESH if seen is not None and seen.alarms else 3 * EVERY
        return seen if seen is not None and self._clock.monotonic() - seen.when < lasts else None

    def look_again(self, key: str) -> None:
        """Query the members at the next tick."""
        self._watched[key].due = 0.0

    def samples(self, key: str) -> tuple[Sample, ...]:
        now = self._clock.monotonic()
        return tuple(Sample(now - when, revision) for when, revision in self._watched[key].samples)

    def shares(self, key: str) -> tuple[Share, ...]:
        """The prefixes that fill it, the largest first; empty while that is not known."""
        return (self._watched[key].shares or ())[:SHOWN]

    def start(self, key: str, job: Job, work: Callable[[], None]) -> None:
        watched = self._watched[key]
        assert watched.job is None
        watched.job = job

        def run() -> None:
            try:
                work()
                job.succeeded = True
            except (TryLater, Refused) as why:
                job.error = why
            finally:
                watched.jobs_ended += 1
                watched.sight, watched.due = None, 0.0  # the job made the last observation obsolete
                job.ended = True
                self._changed()

        self._spawn(run)

    def job(self, key: str) -> Job | None:
        return self._watched[key].job

    def collected(self, key: str) -> None:
        """Drop a job that has ended, once its result was recorded."""
        self._watched[key].job = None

    # Called by the background thread.

    def work(self) -> float:
        """One tick; returns the seconds until the next. Run by a thread of its own."""
        self.tick()
        return 1.0

    def tick(self) -> None:
        """Observe each etcd cluster that is due."""
        for key, own in self._own.items():
            watched = self._watched[key]
            if self._clock.monotonic() < watched.due:
                continue
            before, ended = watched.sight, watched.jobs_ended
            try:
                seen = self._look(key, own, watched)
            except (TryLater, Refused):  # the etcd step reports a member that does not answer
                seen = None
            except OSError:  # its volume was unmounted meanwhile
                seen = None
            if ended != watched.jobs_ended:
                continue  # a job ended during this observation, which mixes the states before and after it
            watched.sight = seen
            watched.due = self._clock.monotonic() + (ALARMED if self._is_alarmed(watched) else EVERY)
            if (before.alarms if before else ()) != (seen.alarms if seen else ()):
                self._changed()

    @staticmethod
    def _is_alarmed(watched: _Watched) -> bool:
        """An observation that failed while an alarm is raised is repeated soon as well."""
        return watched.job is not None or watched.shares is not None or bool(watched.sight and watched.sight.alarms)

    def _look(self, key: str, own: Own, watched: _Watched) -> Sight:
        etcd, now = self.etcd[key], self._clock.monotonic()
        status = etcd.status(own.name)
        _sample(watched, status, now)
        if not status.errors:
            watched.shares, watched.tries = None, 0
            return Sight(when=now, own=status)
        members, alarms = tuple(etcd.members()), tuple(etcd.alarms())
        statuses = {}
        for each in members:
            try:
                answer = etcd.status(each.name)
            except (TryLater, Refused):
                continue
            if answer.member_id == each.id:
                statuses[each.id] = answer
        if alarms and status.leader == status.member_id:
            self._weigh(etcd, own, watched)
        room = os.statvfs(own.point)
        return Sight(
            when=now, own=status, members=members, statuses=statuses, alarms=alarms, free=room.f_bavail * room.f_frsize
        )

    def _weigh(self, etcd: MaintainedEtcd, own: Own, watched: _Watched) -> None:
        """Find the largest prefixes: once for each alarm, and only on the master that holds etcd's leader."""
        if watched.shares is not None or watched.tries >= TRIES:
            return
        watched.tries += 1
        try:
            watched.shares = biggest(etcd, own.name)
        except (TryLater, Refused):
            return


def _sample(watched: _Watched, status: Status, now: float) -> None:
    """Keep one revision every 30 s, for as long as a compaction may need it."""
    if watched.cluster_id != status.cluster_id or any(status.revision < each for _, each in watched.samples):
        watched.samples.clear()  # another cluster answers under this name, with its own revisions
        watched.cluster_id = status.cluster_id
    if not watched.samples or now - watched.samples[-1][0] >= EVERY - 1:
        watched.samples.append((now, status.revision))
    watched.samples[:] = [each for each in watched.samples if now - each[0] <= 2 * OLD_ENOUGH]
