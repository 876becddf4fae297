"""Leader election over one Lease, from one candidate's side; needs no synchronised clocks. Pure: callers pass times.

A leader counts on its lease until shortly before the duration has passed since it SENT the last renewal that succeeded.
Another candidate takes the lease over when the whole duration has passed since it SAW the last change. It writes with
the resourceVersion that it read, so a renewal in between makes the write fail. So two candidates never lead at once,
however long one of them is frozen, as long as their clocks run at about the same speed. Timestamps of other machines
are never compared with ours.
"""

from __future__ import annotations

from dataclasses import dataclass

DURATION = 15.0
RENEW, RETRY, MARGIN = 1 / 3, 1 / 15, 2 / 15
"""Parts of the duration: 5 s, 1 s and 2 s."""
TICK = 0.001
"""The shortest wait, in seconds: sums of floats are not exact, and a wait of zero would poll in a busy loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The fields of a Lease that the election uses."""

    holder: str
    """Empty: the Lease was released."""
    duration: float
    transitions: int = 0
    version: str = ""
    """The resourceVersion. Empty: the Lease does not exist yet."""


class Candidate:
    """The state of one candidate."""

    def __init__(self, identity: str, *, duration: float = DURATION) -> None:
        self.identity, self._duration = identity, duration
        self._seen: Lease | None = None
        self._seen_at = 0.0  # when we first saw it at this version
        self._gone = False  # the last read found no Lease
        self._known = False  # `_seen` is the result of our last read or write, and that one succeeded
        self._sent = 0.0  # when the last renewal was sent
        self._until = float("-inf")

    def leading(self, now: float) -> bool:
        return now < self._until

    def holder(self) -> str:
        """Who leads, according to the last Lease we saw."""
        return self._seen.holder if self._seen else ""

    def must_look(self, now: float) -> bool:
        """Whether to read the Lease before writing it; a leader whose renewals succeed need not."""
        return not (self._known and self.leading(now))

    def saw(self, lease: Lease | None, received: float) -> None:
        """Take the result of a read; `received` is when its response arrived, or later."""
        self._known = True
        gone = lease is None
        if gone != self._gone or (lease is not None and (self._seen is None or lease.version != self._seen.version)):
            self._seen_at = received
        self._gone = gone
        if lease is not None:
            self._seen = lease
        if lease is None or lease.holder != self.identity:
            self._until = float("-inf")  # somebody took it from us by hand: we step down

    def lease_to_write(self, now: float) -> Lease | None:
        """The Lease to write now, over the version in it; None while another candidate's lease may be valid."""
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
        """Our write succeeded; `sent` is when it was sent, or earlier."""
        self._seen, self._seen_at, self._gone, self._known = lease, sent, False, True
        if lease.holder == self.identity:
            self._sent, self._until = sent, sent + self._duration * (1 - MARGIN)

    def failed(self) -> None:
        """Our write was refused, or its outcome is unknown: read the Lease before the next write."""
        self._known = False

    def resign(self) -> Lease | None:
        """Step down. Returns the Lease to write so that the next leader does not wait for ours to expire."""
        led, self._until = self._until > float("-inf"), float("-inf")
        if not led or not self._known or self._seen is None or self._seen.holder != self.identity:
            return None
        seen = self._seen
        return Lease(holder="", duration=seen.duration, transitions=seen.transitions, version=seen.version)

    def wait(self, now: float) -> float:
        """Seconds until there is something to do: a renewal, a retry, or a lease that may expire."""
        renew, retry = self._duration * RENEW, self._duration * RETRY
        if self.leading(now):
            return max(0.0, self._sent + renew - now) if self._known else min(retry, self._until - now)
        if not self._known or self._may_take(now):
            return retry
        assert self._seen is not None
        return min(renew, max(TICK, self._seen_at + self._seen.duration - now))
