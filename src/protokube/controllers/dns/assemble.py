"""Assemble a dns-controller: watches, leader election, zones, and the reporters of its decisions."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from protokube.controllers.candidate import DURATION
from protokube.controllers.dns.controller import Controller, Tell
from protokube.controllers.dns.decide.zonerules import parse_rules
from protokube.controllers.dns.read.fresh import FreshObjects, cluster_id
from protokube.controllers.dns.read.watching import Watching
from protokube.controllers.dns.tell.journal import journal
from protokube.controllers.dns.tell.lag import Lag
from protokube.controllers.dns.write.zones import Zones
from protokube.controllers.dns.write.zonework import Policy
from protokube.controllers.reflector import SILENCE
from protokube.controllers.runtime import AlwaysLeads, BackgroundTask, LeaderElection, elect, patiently
from protokube.kube.session import Session
from protokube.providers.dns import ZoneProvider

if TYPE_CHECKING:
    from protokube.controllers.dns.tell.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the command."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str = ""
    ingresses: bool = False
    owner: str | None = None
    lease: str = "protokube-dns-controller"
    lease_seconds: float = DURATION
    silence: float = SILENCE
    ttl: int = 60
    grace: float = 30.0
    forced: bool = False
    dry_run: bool = False
    adopt: frozenset[str] = frozenset()
    alone: bool = False
    """Without leader election."""
    metrics: str = ""
    events: bool = False
    """Write Events about the objects."""
    conditions: bool = False
    """Write conditions into the status of objects."""


class CountedZones(ZoneProvider, Protocol):
    @property
    def calls(self) -> Mapping[str, int]:
        """Requests to the provider so far, by kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    controller: Controller
    watching: Watching
    election: LeaderElection
    session: Session
    ready: threading.Event
    """Everything was listed and is watched."""
    background: tuple[BackgroundTask, ...] = ()
    """Reporters, each in a thread of its own."""
    metrics: Metrics | None = None


def assemble(options: Options, provider: CountedZones, rules: Sequence[str]) -> Parts:
    tells: list[Tell] = [journal()]
    lags: list[Lag] = []
    elections: list[LeaderElection] = []
    # first: metrics are scraped from the first moment on
    metrics = _metrics(options, provider, tells, lags, elections)
    session = Session.open(options.kubeconfig, options.context)
    try:
        cluster = patiently(lambda: cluster_id(session), log="protokube.dns", tries=1 if options.alone else None)
    except BaseException:
        session.close()
        raise
    ready = threading.Event()
    later: list[Controller] = []

    def changed() -> None:
        for lag in lags:
            lag.heard()
        if not ready.is_set() and watching.look().whole:
            ready.set()
        for controller in later:
            controller.wake()

    watching = Watching(
        session, changed, namespace=options.namespace, ingresses=options.ingresses, silence=options.silence
    )
    lags.append(lag := Lag(watching))
    election: LeaderElection = AlwaysLeads()
    if not options.alone:
        election = elect(session, options.lease, options.lease_seconds, changed)
    elections.append(election)
    policy = Policy(
        owner=options.owner or cluster, ttl=options.ttl, grace=options.grace, forced=options.forced,
        dry_run=options.dry_run, adopt=options.adopt,
    )  # fmt: skip
    background = tuple(_reporters(options, session, tells))
    controller = Controller(
        watching=lag, election=election, zones=Zones(provider, parse_rules(rules)), policy=policy,
        objects=lambda: FreshObjects(session, cluster), tells=tells,
    )  # fmt: skip
    later.append(controller)
    return Parts(
        controller=controller, watching=watching, election=election, session=session, ready=ready,
        background=background, metrics=metrics,
    )  # fmt: skip


def _reporters(options: Options, session: Session, tells: list[Tell]) -> Iterator[BackgroundTask]:
    if options.events and not options.alone:
        from protokube.controllers.dns.tell.events import event_reporter
        from protokube.controllers.events import Events

        events = Events(session, "protokube-dns-controller", socket.gethostname())
        tells.append(event_reporter(events))
        yield events
    if options.conditions and not options.alone:
        from protokube.controllers.dns.tell.conditions import Conditions

        conditions = Conditions(session)
        tells.append(conditions)
        yield conditions


def _metrics(
    options: Options, provider: CountedZones, tells: list[Tell], lags: list[Lag], elections: list[LeaderElection]
) -> Metrics | None:
    if not options.metrics:
        return None
    from protokube.controllers.dns.tell.metrics import Metrics

    metrics = Metrics(
        lambda: provider.calls,
        lambda: lags[0].seconds() if lags else None,
        lambda: any(each.leading() for each in elections),
    )
    metrics.serve(options.metrics)
    tells.append(metrics)
    return metrics
