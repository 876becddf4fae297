"""Runs the probes of one container, each at its own period; a new one for each start of the container."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from protokube.local.base.reactor import Reactor, Timer
from protokube.local.pods.children import Child
from protokube.local.pods.pods import ContainerSpec
from protokube.local.pods.probes import start_check
from protokube.local.pods.probestate import Probe, Verdict, is_ready, judge, why_restart


class Probers:
    """Calls `restart` once a probe demands it, and `changed` whenever readiness changes."""

    def __init__(
        self,
        spec: ContainerSpec,
        container: int,
        reactor: Reactor,
        restart: Callable[[str], None],
        changed: Callable[[], None],
    ) -> None:
        named = {"startup": spec.startup, "liveness": spec.liveness, "readiness": spec.readiness}
        self._probes: dict[str, Probe] = {name: probe for name, probe in named.items() if probe is not None}
        self._verdicts = {name: Verdict() for name in self._probes}
        self._container, self._reactor, self._restart, self._changed = container, reactor, restart, changed
        self._timers: dict[str, Timer] = {}
        self._checks: dict[str, Child] = {}
        self._stopped = False
        for name in ("startup",) if "startup" in self._probes else self._probes:
            self._later(name, self._probes[name].initial_delay)

    @property
    def ready(self) -> bool:
        return is_ready(self._verdicts.get("readiness"), self._verdicts.get("startup"))

    def stop(self) -> None:
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()
        for child in self._checks.values():
            child.kill_group()

    def _later(self, name: str, seconds: float) -> None:
        self._timers[name] = self._reactor.after(seconds, partial(self._check, name))

    def _check(self, name: str) -> None:
        probe = self._probes[name]
        self._later(name, probe.period)
        if name not in self._checks:  # the last one may still be dying
            self._checks[name] = start_check(probe, self._container, partial(self._finished, name), self._reactor)

    def _finished(self, name: str, why: str | None) -> None:
        del self._checks[name]
        if self._stopped:
            return
        was_ready = self.ready
        self._verdicts[name] = judge(self._verdicts[name], self._probes[name], why)
        if name == "startup" and self._verdicts[name].good:
            self._timers.pop(name).cancel()
            for other in self._probes.keys() - {"startup"}:
                self._later(other, self._probes[other].initial_delay)
        if self.ready != was_ready:
            self._changed()
        if reason := why_restart(self._verdicts.get("liveness"), self._verdicts.get("startup")):
            self._restart(reason)
