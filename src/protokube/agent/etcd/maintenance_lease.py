"""One API server at a time is taken away on purpose: whoever wants to has leave, a key in etcd, or waits.

The key has a lease of its own, kept while the API server is away and given back once it serves again. A master that
dies on leave takes nobody's turn for longer than that lease. Rounds ask; everything that needs etcd is done by `beat`,
which is called beside them.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from protokube.agent.edges import Clock
from protokube.errors import Refused, TryLater
from protokube.etcd import Etcd

TTL = 5
"""Seconds without a word after which a leave, or the wish for one, is over."""
SURELY_BACK = 30.0
"""Seconds after which an API server that serves has come back, though nobody saw it away: it may have been quick."""
LONGEST = 90.0
"""Seconds after which another one may go, though this one never came back."""


@dataclass(slots=True)
class _Held:
    lease: int
    kept: float
    began: float | None = None
    """When the API server was taken away; None until then."""
    seen_away: bool = False


class MaintenanceLease:
    """The leave of this master."""

    def __init__(self, etcd: Etcd, key: str, me: str, clock: Clock) -> None:
        self._etcd, self._key, self._me, self._clock = etcd, key, me, clock
        self._held: _Held | None = None
        self._requested = float("-inf")
        self._lock = threading.Lock()

    def may_restart(self) -> bool:
        """Whether to go now. Each leave is for one absence; who asks and gets none asks again in the next round."""
        with self._lock:
            now, held = self._clock.monotonic(), self._held
            self._requested = now
            if held is None or held.began is not None or now - held.kept >= TTL - 1:
                return False
            held.began = now
            return True

    def beat(self, taken: bool, serving: bool) -> bool:
        """Get, keep or give back; whether there is leave now that was not there before."""
        held = self._held
        if held is None:
            return not taken and self._is_wanted() and self._acquire()
        sent = self._clock.monotonic()
        kept = self._etcd.keep(held.lease)
        with self._lock:
            if self._held is not held:
                return False  # given back meanwhile
            held.kept = sent
            held.seen_away |= held.began is not None and not serving
            if kept and not self._is_over(held, serving):
                return False
            self._held = None
        if kept:
            self._etcd.revoke(held.lease)
        return False

    def release(self) -> None:
        """Give it back, whatever is going on; silently if etcd does not answer, since a lease ends by itself."""
        with self._lock:
            held, self._held = self._held, None
        if held is not None:
            try:
                self._etcd.revoke(held.lease)
            except (TryLater, Refused):
                return

    def _is_wanted(self) -> bool:
        return self._clock.monotonic() - self._requested < TTL

    def _acquire(self) -> bool:
        sent = self._clock.monotonic()
        lease = self._etcd.grant(TTL)
        if not self._etcd.create(self._key, self._me, lease):
            self._etcd.revoke(lease)
            return False
        self._held = _Held(lease, sent)
        return True

    def _is_over(self, held: _Held, serving: bool) -> bool:
        if held.began is None:
            return not self._is_wanted()
        away = self._clock.monotonic() - held.began
        return away >= LONGEST or (serving and (held.seen_away or away >= SURELY_BACK))
