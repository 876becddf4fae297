"""Maintenance lease: at most one API server restarts at a time, the one whose master holds a key in etcd.

The key is bound to an etcd lease of its own, kept alive while the API server is down and revoked once it serves again.
If a master dies while it holds the key, the lease expires and another master may restart its API server. Rounds only
request it; a background thread makes all calls to etcd, in `beat`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from protokube.agent.edges import Clock
from protokube.errors import Refused, TryLater
from protokube.etcd import Etcd

TTL = 5
"""Seconds: the lease's time to live; and how long a request stays valid if no round repeats it."""
SURELY_BACK = 30.0
"""Seconds after which an API server that serves has restarted, also if it was never seen down: it may be fast."""
LONGEST = 90.0
"""Seconds after which another API server may restart, even if this one never came back."""


@dataclass(slots=True)
class _Held:
    lease: int
    kept: float
    began: float | None = None
    """When the restart began; None until then."""
    seen_away: bool = False


class MaintenanceLease:
    """This master's side of the maintenance lease."""

    def __init__(self, etcd: Etcd, key: str, me: str, clock: Clock) -> None:
        self._etcd, self._key, self._me, self._clock = etcd, key, me, clock
        self._held: _Held | None = None
        self._requested = float("-inf")
        self._lock = threading.Lock()

    def may_restart(self) -> bool:
        """Whether to restart the API server now. A lease allows one restart; without one, the next round asks again."""
        with self._lock:
            now, held = self._clock.monotonic(), self._held
            self._requested = now
            if held is None or held.began is not None or now - held.kept >= TTL - 1:
                return False
            held.began = now
            return True

    def beat(self, taken: bool, serving: bool) -> bool:
        """Acquire, keep alive or revoke the lease. Returns whether it was acquired just now."""
        held = self._held
        if held is None:
            return not taken and self._is_wanted() and self._acquire()
        sent = self._clock.monotonic()
        kept = self._etcd.keep(held.lease)
        with self._lock:
            if self._held is not held:
                return False  # released meanwhile
            held.kept = sent
            held.seen_away |= held.began is not None and not serving
            if kept and not self._is_over(held, serving):
                return False
            self._held = None
        if kept:
            self._etcd.revoke(held.lease)
        return False

    def release(self) -> None:
        """Revoke the lease in any state. Ignores an etcd that does not answer, since the lease expires by itself."""
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
