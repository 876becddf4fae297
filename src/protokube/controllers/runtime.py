"""What every controller is assembled from besides its own work: leader election, background tasks, a patient start."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from protokube.controllers.election import Election
from protokube.errors import TryLater
from protokube.kube.client import ApiError
from protokube.kube.session import Session

LEASE_NAMESPACE = "kube-system"
NOT_YET = (401, 403, 404)
"""Answers of an API server that has just started: its first namespaces and its RBAC rules come a little later."""
T = TypeVar("T")


class BackgroundTask(Protocol):
    """Runs in a thread of its own."""

    def run(self, stop: threading.Event) -> None: ...

    def wake(self) -> None:
        """Look whether to stop."""


class LeaderElection(Protocol):
    def leading(self) -> bool:
        """Whether this process leads now. False whenever that is not certain."""

    def holder(self) -> str:
        """Who leads, as far as this process knows."""

    def run(self, stop: threading.Event) -> None: ...


class AlwaysLeads:
    """For a single round by hand, and for a dry run: no lease is taken."""

    def leading(self) -> bool:
        return True

    def holder(self) -> str:
        return ""

    def run(self, stop: threading.Event) -> None:
        stop.wait()


def elect(session: Session, lease: str, seconds: float, changed: Callable[[], None]) -> LeaderElection:
    """Take part in the election over this lease; `changed` is called when leadership is gained or lost."""
    return Election(session, LEASE_NAMESPACE, lease, gained=changed, lost=changed, duration=seconds)


def patiently(
    ask: Callable[[], T], *, log: str, tries: int | None = None, sleep: Callable[[float], None] = time.sleep
) -> T:
    """Ask until the API server answers, with back-off: one that is not up yet is no reason to exit."""
    pause, logged = 0.2, ""
    while True:
        try:
            return ask()
        except (TryLater, ApiError) as why:
            tries = None if tries is None else tries - 1
            if tries == 0 or (isinstance(why, ApiError) and why.status not in NOT_YET):
                raise
            if logged != why.message:
                logging.getLogger(log).info("waiting for the API server: %s", why.message)
            logged = why.message
            sleep(pause)
            pause = min(pause * 2, 10)
