"""Prometheus metrics of the agent: rounds, waits, and the volumes that this master holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from protokube.agent.round import Round
from protokube.host import metrics


@dataclass(frozen=True, slots=True)
class Served:
    """Metrics that can be read."""

    after: Callable[[Round, float], None]
    """To be called after each round."""
    close: Callable[[], None]


def serve(address: str) -> Served:
    """Serve metrics at HOST:PORT."""
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

    registry = CollectorRegistry()
    rounds = Counter("protokube_rounds", "Rounds of the agent", registry=registry)
    seconds = Histogram("protokube_round_seconds", "How long rounds take", registry=registry)
    waiting = Gauge("protokube_waiting", "Things that are waited for", ["step"], registry=registry)
    person = Gauge("protokube_needs_a_person", "Things that a person has to decide", ["step"], registry=registry)
    broken = Counter("protokube_step_failures", "Steps that ended in a bug", ["step"], registry=registry)
    epoch = Gauge("protokube_volume_epoch", "Epoch of each volume held here", ["member", "volume"], registry=registry)
    elected = Gauge("protokube_elected", "1 on the elected master, which writes shared state", registry=registry)

    def after(round_: Round, took: float) -> None:
        rounds.inc()
        seconds.observe(took)
        for gauge, notes in ((waiting, round_.report.waits), (person, round_.report.person)):
            gauge.clear()
            for note in notes:
                gauge.labels(note.step).inc()
        for note in round_.report.bugs:
            broken.labels(note.step).inc()
        epoch.clear()
        for disk in round_.mounted:
            if disk.listed is not None:
                epoch.labels(disk.name, disk.volume).set(disk.listed.epoch)
        elected.set(round_.edges.presence.elected())

    return Served(after, metrics.serve(registry, address))
