"""Who leads, decided without a clock in common: one candidate for one Lease. Pure; times are told.

A leader believes in its lease until shortly before the duration has passed since it SENT the renewal that succeeded.
Another takes it over when the whole duration has passed since it SAW the last change, and only by comparing versions:
a renewal that comes first makes it fail. So at no moment do two believe, however long one is frozen and whenever it
wakes, if the clocks run at about the same speed. Times of other machines are never compared with ours.
"""

from __future__ import annotations

from dataclasses import dataclass

DURATION = 15.0
RENEW, RETRY, MARGIN = 1 / 3, 1 / 15, 2 / 15
"""Parts of the duration: 5 s, 1 s and 2 s."""
TICK = 0.001
"""Seconds that are waited at least: sums of times are not exact, and nobody should ask again in the same moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """What counts of a Lease."""

    holder: str
    """Empty: it was released."""
    duration: float
    transitions: int = 0
    version: str = ""
    """Empty: it does not exist yet."""


class Candidate:
    """One who would lead."""

    def __init__(self, identity: str, *, duration: float = DURATION) -> None:
        self.identity, self._duration = identity, duration
        self._seen: Lease | None = None
        self._seen_at = 0.0  # when we saw it for the first time as it is
        self._gone = False  # there was a Lease, and there is none
        self._known = False  # what we saw is what was there a moment ago, as far as we know
        self._sent = 0.0  # the last renewal
        self._until = float("-inf")

    def leading(self, now: float) -> bool:
        return now < self._until

    def holder(self) -> str:
        """Who leads, by what we saw last."""
        return self._seen.holder if self._seen else ""

    def must_look(self, now: float) -> bool:
        """Whether to read the Lease first; a leader whose renewals succeed need not."""
        return not (self._known and self.leading(now))

    def saw(self, lease: Lease | None, received: float) -> None:
        """What a read brought; `received` is when its answer was here, or later."""
        self._known = True
        gone = lease is None
        if gone != self._gone or (lease is not None and (self._seen is None or lease.version != self._seen.version)):
            self._seen_at = received
        self._gone = gone
        if lease is not None:
            self._seen = lease
        if lease is None or lease.holder != self.identity:
            self._until = float("-inf")  # taken from us by hand: we do not insist

    def wish(self, now: float) -> Lease | None:
        """What to write now, over the version in it; None: somebody else leads, or nobody may yet."""
        if not self._known:
            return None
        seen = None if self._gone else self._seen
        if not self._may_take(now):
            return None
        changes = self._seen.transitions + (self._seen.holder != self.identity) if self._seen else 0
        version = seen.version if seen else ""
        return Lease(holder=self.identity, duration=self._duration, transitions=changes, version=version)

    def _may_take(self, now: float) -> bool:
        if self._seen is None or self._seen.holder in ("", self.identity):
            return True
        return now - self._seen_at >= self._seen.duration

    def wrote(self, lease: Lease, sent: float) -> None:
        """A write of ours succeeded; `sent` is when it was sent, or earlier."""
        self._seen, self._seen_at, self._gone, self._known = lease, sent, False, True
        if lease.holder == self.identity:
            self._sent, self._until = sent, sent + self._duration * (1 - MARGIN)

    def failed(self) -> None:
        """A write of ours was refused, or nobody knows: only a look tells."""
        self._known = False

    def resign(self) -> Lease | None:
        """From now on we do not lead; what to write so that nobody has to wait for it."""
        led, self._until = self._until > float("-inf"), float("-inf")
        if not led or not self._known or self._seen is None or self._seen.holder != self.identity:
            return None
        seen = self._seen
        return Lease(holder="", duration=seen.duration, transitions=seen.transitions, version=seen.version)

    def wait(self, now: float) -> float:
        """Seconds until there is something to do: a renewal, another try, or a lease that may run out."""
        renew, retry = self._duration * RENEW, self._duration * RETRY
        if self.leading(now):
            return max(0.0, self._sent + renew - now) if self._known else min(retry, self._until - now)
        if not self._known or self._may_take(now):
            return retry
        assert self._seen is not None
        return min(renew, max(TICK, self._seen_at + self._seen.duration - now))
