"""Masters that were launched at different times, and see to the add-ons of one cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from builders.addons import MemoryKube
from builders.agent import Alone, Machines, a_machine, a_round
from builders.config import completed
from clusters.scenario.edges import HostClock
from protokube.addons.current import decode
from protokube.addons.value import Addon, digest, encode
from protokube.agent.cluster import steps
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.launch.derive import from_config
from protokube.store import NotThere, Store, Stored
from protokube.store.addons import place
from protokube.store.memory import MemoryStore

PLAIN = from_config(completed(cloud="local", name="laptop", masters=1, nodes=1))
CURRENT = place(PLAIN.cluster, "current")


class LateStore(MemoryStore):
    """A store as one master sees it: which set is current, it may hear late."""

    def __init__(self, name: str, history: Sequence[Stored] = ()) -> None:
        super().__init__(name)
        self.history, self.behind = history, 0
        self.told = 0
        """The number that was read last; 0 if there was none."""

    def read(self, path: str) -> Stored:
        if path != CURRENT:
            return super().read(path)
        self.told = 0
        if self.behind:
            if self.behind >= len(self.history):
                raise NotThere(path, self.url)
            stored = self.history[-1 - self.behind]
        else:
            stored = super().read(path)
        self.told = decode(stored.data).number
        return stored


class Master:
    """The agent of one of them, as far as it sees to the cluster; it is elected until it is told otherwise."""

    def __init__(self, root: Path, kube: MemoryKube, store: Store, launched_with: Sequence[Addon]) -> None:
        store.put(place(PLAIN.cluster, digest(launched_with)), encode(launched_with))
        self.wanted = replace(PLAIN, addons=digest(launched_with))
        self.edges = a_round(root, wanted=self.wanted, kube=kube, store=store).edges
        self.edges.machines = Machines(a_machine(), a_machine("n-1", group="nodes"))

    def round(self, *, passed: float = 0.0, elected: bool = True) -> Report:
        cast(HostClock, self.edges.clock).common.advance(passed)
        self.edges.presence = Alone({}, elected=elected, serving=[self.edges.me.id])
        round_ = Round(edges=self.edges, wanted=self.wanted, report=Report())
        steps.sync(round_)
        return round_.report
