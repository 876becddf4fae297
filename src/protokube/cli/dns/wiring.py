"""The parts of a dns-controller, put together: who watches, who leads, who writes, and who is told."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from protokube.controllers.candidate import DURATION
from protokube.controllers.dns.controller import Controller, Leads, Tell
from protokube.controllers.dns.decide.zonerules import parse_rules
from protokube.controllers.dns.read.fresh import FreshObjects, cluster_id
from protokube.controllers.dns.read.watching import Watching
from protokube.controllers.dns.tell.journal import journal
from protokube.controllers.dns.tell.lag import Lag
from protokube.controllers.dns.write.zones import Zones
from protokube.controllers.dns.write.zonework import Policy
from protokube.controllers.election import Election
from protokube.controllers.reflector import SILENCE
from protokube.errors import TryLater
from protokube.kube.client import ApiError
from protokube.kube.session import Session
from protokube.providers.dns.opened import OpenZones

if TYPE_CHECKING:
    from protokube.controllers.dns.tell.metrics import Metrics

LEASE_NAMESPACE = "kube-system"
NOT_YET = (401, 403, 404)
"""A little after its API server answers, a new cluster has its first namespaces, and is told who may do what."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the user says."""

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
    """Ask nobody who leads."""
    metrics: str = ""
    events: bool = False
    """Tell the owners of objects."""
    conditions: bool = False
    """Say it on the objects themselves."""


class Beside(Protocol):
    def run(self, stop: threading.Event) -> None: ...

    def wake(self) -> None:
        """Look whether to stop."""


class Elects(Leads, Protocol):
    def run(self, stop: threading.Event) -> None: ...


class AlwaysLeads:
    """For one round by hand, and for a dry run: nobody else is asked."""

    def leading(self) -> bool:
        return True

    def holder(self) -> str:
        return ""

    def run(self, stop: threading.Event) -> None:
        stop.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    controller: Controller
    watching: Watching
    election: Elects
    session: Session
    ready: threading.Event
    """Everything was listed and is watched."""
    beside: tuple[Beside, ...] = ()
    """Those that tell, each in a thread of its own."""
    metrics: Metrics | None = None


def wire(asked: Asked, provider: OpenZones, rules: Sequence[str]) -> Parts:
    tells: list[Tell] = [journal()]
    lags: list[Lag] = []
    elections: list[Elects] = []
    # first: whoever looks after us asks from the first moment on
    metrics = _metrics(asked, provider, tells, lags, elections)
    session = Session.open(asked.kubeconfig, asked.context)
    try:
        cluster = patiently(lambda: cluster_id(session), tries=1 if asked.alone else None)
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

    watching = Watching(session, changed, namespace=asked.namespace, ingresses=asked.ingresses, silence=asked.silence)
    lags.append(lag := Lag(watching))
    election: Elects = AlwaysLeads()
    if not asked.alone:
        election = Election(
            session, LEASE_NAMESPACE, asked.lease, gained=changed, lost=changed, duration=asked.lease_seconds
        )
    elections.append(election)
    policy = Policy(
        owner=asked.owner or cluster, ttl=asked.ttl, grace=asked.grace, forced=asked.forced, dry_run=asked.dry_run,
        adopt=asked.adopt,
    )  # fmt: skip
    beside = tuple(_beside(asked, session, tells))
    controller = Controller(
        watching=lag, election=election, zones=Zones(provider, parse_rules(rules)), policy=policy,
        objects=lambda: FreshObjects(session, cluster), tells=tells,
    )  # fmt: skip
    later.append(controller)
    return Parts(
        controller=controller, watching=watching, election=election, session=session, ready=ready, beside=beside,
        metrics=metrics,
    )  # fmt: skip


def _beside(asked: Asked, session: Session, tells: list[Tell]) -> Iterator[Beside]:
    if asked.events and not asked.alone:
        from protokube.controllers.dns.tell.events import event_reporter
        from protokube.controllers.events import Events

        events = Events(session, "protokube-dns-controller", socket.gethostname())
        tells.append(event_reporter(events))
        yield events
    if asked.conditions and not asked.alone:
        from protokube.controllers.dns.tell.conditions import Conditions

        conditions = Conditions(session)
        tells.append(conditions)
        yield conditions


def _metrics(
    asked: Asked, provider: OpenZones, tells: list[Tell], lags: list[Lag], elections: list[Elects]
) -> Metrics | None:
    if not asked.metrics:
        return None
    from protokube.controllers.dns.tell.metrics import Metrics

    metrics = Metrics(
        lambda: provider.calls,
        lambda: lags[0].seconds() if lags else None,
        lambda: any(each.leading() for each in elections),
    )
    metrics.serve(asked.metrics)
    tells.append(metrics)
    return metrics


def patiently(ask: Callable[[], T], *, tries: int | None) -> T:
    """Ask until there is an answer: an API server that is not up yet is no reason to fall over."""
    pause, said = 0.2, ""
    while True:
        try:
            return ask()
        except (TryLater, ApiError) as why:
            tries = None if tries is None else tries - 1
            if tries == 0 or (isinstance(why, ApiError) and why.status not in NOT_YET):
                raise
            if said != why.message:
                logging.getLogger("protokube.dns").info("waiting for the API server: %s", why.message)
            said = why.message
            time.sleep(pause)
            pause = min(pause * 2, 10)
