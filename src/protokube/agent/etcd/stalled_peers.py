"""Watch the connections between etcd members of this machine and their peers; abort those that have stalled.

A background thread, since it has to look every second: a machine that vanishes must not hold up its successor. Nothing
is decided by it: an etcd whose connection ends dials again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

from protokube.errors import Refused
from protokube.etcd import peer_connections
from protokube.etcd.peer_connections import Connection

log = logging.getLogger("protokube.agent")
EVERY, HANGS = 1.0, 60.0
LATER, NEVER = 60.0, 86_400.0
"""Seconds until the next attempt where the kernel does not list connections; where it cannot abort them."""


class StalledPeers:
    """Aborts stalled connections from and to the peer ports of etcd."""

    def __init__(
        self,
        ports: Collection[int],
        read_stalled: Callable[[Collection[int]], Sequence[Connection]] = peer_connections.read_stalled,
        abort: Callable[[Connection], bool] = peer_connections.abort,
    ) -> None:
        self._ports, self._read_stalled, self._abort = frozenset(ports), read_stalled, abort
        self._problem = ""

    def work(self) -> float:
        """One look; returns the seconds until the next. Run by a thread of its own."""
        try:
            aborted = sorted({each.remote for each in self._read_stalled(self._ports) if self._abort(each)})
        except Refused as why:
            return self._without(why.in_one_line(), NEVER)
        except OSError as why:  # for example a kernel without sock_diag
            return self._without(f"connections cannot be listed ({why.strerror or why})", LATER)
        for address in aborted:
            log.info("etcd: connection to its peer at %s aborted: nothing comes back from there", address)
        return EVERY

    def _without(self, problem: str, pause: float) -> float:
        """Go on without it, and log each problem once: etcd waits for such peers as it does without us."""
        if problem != self._problem:
            log.warning("etcd waits longer for peers whose machine vanished: %s", problem)
            self._problem = problem
        return pause
