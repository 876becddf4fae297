"""Drills on a cluster while something else runs on it, one after the other until it ends."""

from __future__ import annotations

import json
import threading
from types import TracebackType
from typing import Any, Self

from clusters.real import RealCluster

PAUSE = 5.0
"""Seconds between two drills: a client may use what has healed."""


class Drills:
    """Use it as a context: no drill begins after its end, and the last one is waited for."""

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
            said = self.cluster.run(
                "drill", self.name, "--cluster", self.cluster.name, "--timeout", "240s", "--output", "json", seconds=500
            )
            verdict: dict[str, Any] = json.loads(said.out) if said.out else {"broken": [said.err[-500:]], "steps": []}
            healed = max((step["seconds"] for step in verdict["steps"]), default=0.0)
            self.verdicts.append(f"{self.name}: exit code {said.code}, healed after {healed:.1f} s")
            if said.code != 0:
                self.broken += [f"{self.name}: {each}" for each in verdict["broken"] or [f"exit code {said.code}"]]
            ready = self.cluster.run(
                "status", "--cluster", self.cluster.name, "--wait", "--timeout", "240s", seconds=300
            )
            if ready.code != 0:
                self.broken.append(f"not ready after {self.name}: {ready.err[-500:]}")
