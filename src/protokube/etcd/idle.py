"""Open connections to members between two calls.

The hard part is the end: a survey, or a command that looks at a cluster, abandons threads that still wait for a member.
A connection that such a thread gives back after `close` is closed at once, since nobody would use it again.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterable

from protokube.etcd.wire import Wire

MOST_IDLE = 4
"""Connections kept for each member."""


class IdleWires:
    """Idle connections by member. Threads may share it."""

    def __init__(self, members: Iterable[str]) -> None:
        self._idle: dict[str, list[Wire]] = {name: [] for name in members}
        self._most = MOST_IDLE
        self._lock = threading.Lock()

    def take(self, member: str, context: ssl.SSLContext | None) -> Wire | None:
        """A connection that is still open and uses the current certificates."""
        while True:
            with self._lock:
                if not self._idle[member]:
                    return None
                wire = self._idle[member].pop()
            if wire.context is context and wire.idle():
                return wire
            wire.close()

    def give(self, member: str, wire: Wire) -> None:
        """Keep a connection for the next call, or close it."""
        with self._lock:
            if len(self._idle[member]) < self._most:
                self._idle[member].append(wire)
                return
        wire.close()

    def close(self) -> None:
        """Close all, and keep none from now on."""
        with self._lock:
            self._most = 0
            left = [wire for idle in self._idle.values() for wire in idle]
            for idle in self._idle.values():
                idle.clear()
        for wire in left:
            wire.close()
