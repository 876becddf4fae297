"""The reconcile loop: events wake it, and it runs at least every ten seconds.

While something is waited for, rounds run more often, with a back-off while nothing changes. A minimum gap between two
rounds keeps a storm of events from causing a storm of rounds.
"""

from __future__ import annotations

import json
import logging
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from protokube.agent.edges import Edges
from protokube.agent.round import Round
from protokube.agent.status import snapshot
from protokube.agent.sync import run_round
from protokube.host.files import write_atomic
from protokube.launch.machine import MasterConfig

log = logging.getLogger("protokube.agent")
IDLE, SOON, GAP = 10.0, 0.1, 0.03
"""Seconds: between idle rounds; after a change; the minimum gap between two rounds."""


class Pace:
    """How long to sleep after a round: back-off with jitter."""

    def __init__(self, jitter: Callable[[], float] = random.random) -> None:
        self._jitter, self._waits, self._pause = jitter, "", SOON

    def after(self, round_: Round) -> float:
        report = round_.report
        open_ends = "; ".join(f"{each.step} {each.about}" for each in (*report.waits, *report.bugs))
        if report.did or open_ends != self._waits:
            self._pause = SOON
        else:
            self._pause = min(self._pause * 2, IDLE)
        self._waits = open_ends
        if not open_ends and not report.did:
            self._pause = IDLE
        return min(self._pause * (0.9 + 0.2 * self._jitter()), round_.next_within)


class Loop:
    """Runs rounds until `stop`.

    `at_end` runs on shutdown. `on_summary` gets the one-line report of each round, `after` each round with the seconds
    it took, `publish` its status; none of them may wait for anything.
    """

    def __init__(self, edges: Edges, wanted: MasterConfig, *, status: Path, wake: threading.Event) -> None:
        self.edges, self.wanted = edges, wanted
        self.rounds = 0
        self.at_end: list[Callable[[], None]] = []
        self.on_summary: Callable[[str], None] = lambda _summary: None
        self.after: Callable[[Round, float], None] = lambda _round, _took: None
        self.publish: Callable[[dict[str, Any]], None] = lambda _status: None
        self._status = status
        self._wake, self._stop = wake, threading.Event()
        self._pace, self._summary = Pace(), ""
        self.restart = False
        """The agent has taken another revision, and starts again with it."""
        self.leave = False
        """The agent ends its machine."""

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        self._stop.set()
        self._wake.set()

    def run(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()  # before the round: an event during it triggers another one
            pause = self.once()
            if self.restart or self.leave or self._stop.wait(GAP):
                break
            self._wake.wait(pause)

    def once(self) -> float:
        """Run one round, log it and write its status; returns the seconds to sleep after it."""
        began = self.edges.clock.monotonic()
        round_ = run_round(self.edges, self.wanted)
        took = self.edges.clock.monotonic() - began
        self.rounds += 1
        timeless, sentence = round_.report.sentence(), round_.report.sentence(self.edges.clock.now())
        if sentence and (round_.report.did or timeless != self._summary):
            log.info("round %d, %.2fs: %s", self.rounds, took, sentence)
        self._summary = timeless
        pause = self._pace.after(round_)
        status = snapshot(round_, number=self.rounds, took=took, pause=pause)
        self._write(status)
        self.publish(status)
        self.on_summary(sentence or "settled")
        self.after(round_, took)
        self.restart, self.leave = round_.restart_agent, round_.end_machine
        return pause

    def _write(self, document: dict[str, Any]) -> None:
        try:
            # atomic, but without fsync: after a crash the next round writes it again
            write_atomic(self._status, (json.dumps(document, sort_keys=True) + "\n").encode(), durable=False)
        except OSError as error:  # a full disk must not stop the rounds
            log.warning("cannot write %s: %s", self._status, error.strerror)
