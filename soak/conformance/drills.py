"""Run drills on a cluster, one after the other, while the tests run."""

from __future__ import annotations

import json
import threading
from types import TracebackType
from typing import Any, Self

from clusters.real import RealCluster

PAUSE = 5.0
"""Seconds between two drills, in which clients can use the healed cluster."""


class Drills:
    """A context in which drills run; its exit waits for the last one."""

    def __init__(self, cluster: RealCluster, name: str) -> None:
        self.cluster, self.name = cluster, name
        self.verdicts: list[str] = []
        self.broken: list[str] = []
        """Promises that a drill found broken."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="drills")

    def __enter__(self) -> Self:
        if self.name:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self.name:
            self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(PAUSE):
            ran = self.cluster.run(
                "drill", self.name, "--cluster", self.cluster.name, "--timeout", "240s", "--output", "json", seconds=500
            )
            verdict: dict[str, Any] = json.loads(ran.out) if ran.out else {"broken": [ran.err[-500:]], "steps": []}
            healed = max((step["seconds"] for step in verdict["steps"]), default=0.0)
            self.verdicts.append(f"{self.name}: exit code {ran.code}, healed after {healed:.1f} s")
            if ran.code != 0:
                self.broken += [f"{self.name}: {each}" for each in verdict["broken"] or [f"exit code {ran.code}"]]
            ready = self.cluster.run(
                "status", "--cluster", self.cluster.name, "--wait", "--timeout", "240s", seconds=300
            )
            if ready.code != 0:
                self.broken.append(f"not ready after {self.name}: {ready.err[-500:]}")
