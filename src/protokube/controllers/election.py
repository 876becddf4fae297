"""Leader election over a Lease: of several replicas, one leads.

`leading()` is exact at any moment and makes no request. It uses the clock that also runs while the machine sleeps, so a
process that was frozen knows at once when it wakes. The thread calls `gained` and `lost` a little later.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import math
import random
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from protokube.controllers.candidate import DURATION, Candidate, Lease
from protokube.controllers.guard import guarded
from protokube.errors import TryLater
from protokube.kube.client import ApiError

PATIENCE = 4.0
JITTER = 0.2
LEASES = "/apis/coordination.k8s.io/v1/namespaces"

log = logging.getLogger(__name__)


class LeaseApi(Protocol):
    """Read and write Leases; `protokube.kube.session.Session` implements it."""

    def get(self, path: str, *, patience: float | None = None) -> bytes: ...
    def create(self, path: str, body: bytes, *, patience: float | None = None) -> bytes: ...
    def replace(self, path: str, body: bytes, *, patience: float | None = None) -> bytes: ...


def boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Election:
    """One candidate for the Lease `namespace/name`. One thread runs it; any thread may call the other methods."""

    def __init__(
        self,
        server: LeaseApi,
        namespace: str,
        name: str,
        *,
        gained: Callable[[], None] = lambda: None,
        lost: Callable[[], None] = lambda: None,
        duration: float = DURATION,
        identity: str = "",
    ) -> None:
        self._server, self._namespace, self._name = server, namespace, name
        self._gained, self._lost = gained, lost
        self.identity = identity or f"{socket.gethostname()}-{secrets.token_hex(4)}"
        self._candidate = Candidate(self.identity, duration=duration)
        self._duration = duration
        self._tree: dict[str, Any] = {}
        self._announced = False
        self._trouble = ""

    def leading(self) -> bool:
        return self._candidate.leading(boottime())

    def holder(self) -> str:
        return self._candidate.holder()

    def trouble(self) -> str:
        """Why the Lease cannot be read or written, in words."""
        return self._trouble

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set, then release the Lease for the next leader."""
        while not stop.is_set():
            trouble = self._guarded(self._step)
            if trouble != self._trouble:
                self._trouble = trouble
                if trouble:
                    log.warning("lease %s/%s: %s", self._namespace, self._name, trouble)
            self._guarded(self._announce)
            early, late = (1 - JITTER, 1.0) if self._announced else (1.0, 1 + JITTER)
            stop.wait(self._candidate.wait(boottime()) * random.uniform(early, late))  # noqa: S311  # no secret
            self._guarded(self._announce)
        self._guarded(self._release)
        self._guarded(self._announce)

    def _guarded(self, work: Callable[[], None]) -> str:
        return guarded(f"lease {self._namespace}/{self._name}", work)

    def _step(self) -> None:
        candidate = self._candidate
        if candidate.must_look(boottime()):
            lease = self._read()
            candidate.saw(lease, boottime())
        if (wanted := candidate.lease_to_write(boottime())) is not None:
            self._write(wanted)

    def _write(self, lease: Lease) -> None:
        sent = boottime()
        self._candidate.failed()  # until the response arrives, the outcome is unknown
        self._candidate.wrote(self._put(lease), sent)

    def _release(self) -> None:
        if (lease := self._candidate.resign()) is not None:
            self._put(lease)

    def _announce(self) -> None:
        leading = self.leading()
        if leading == self._announced:
            return
        self._announced = leading
        log.info("lease %s/%s: %s", self._namespace, self._name, "we lead" if leading else "we no longer lead")
        (self._gained if leading else self._lost)()

    @property
    def _path(self) -> str:
        return f"{LEASES}/{self._namespace}/leases"

    def _patience(self) -> float:
        return min(PATIENCE, self._duration / 3)

    def _read(self) -> Lease | None:
        try:
            answer = self._server.get(f"{self._path}/{self._name}", patience=self._patience())
        except ApiError as error:
            if error.status != 404:
                raise
            self._tree = {}
            return None
        return self._parsed(answer)

    def _put(self, lease: Lease) -> Lease:
        """Create the Lease if there is none, else replace it; both fail if another candidate wrote first."""
        tree = tree_of(self._tree, lease, self._namespace, self._name, dt.datetime.now(dt.UTC))
        body = json.dumps(tree).encode()
        if lease.version:
            answer = self._server.replace(f"{self._path}/{self._name}", body, patience=self._patience())
        else:
            answer = self._server.create(self._path, body, patience=self._patience())
        return self._parsed(answer)

    def _parsed(self, answer: bytes) -> Lease:
        try:
            tree = json.loads(answer)
            lease = lease_of(tree)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TryLater(f"the API server's reply is no Lease: {answer[:100].decode(errors='replace')}") from error
        self._tree = tree
        return lease


def lease_of(tree: dict[str, Any]) -> Lease:
    spec = tree.get("spec") or {}
    return Lease(
        holder=str(spec.get("holderIdentity") or ""),
        duration=float(spec.get("leaseDurationSeconds") or DURATION),
        transitions=int(spec.get("leaseTransitions") or 0),
        version=str(tree["metadata"]["resourceVersion"]),
    )


def tree_of(base: dict[str, Any], lease: Lease, namespace: str, name: str, now: dt.datetime) -> dict[str, Any]:
    """The Lease object to send; labels and other fields that others set stay. Its times are for people only."""
    stamp = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    old = base.get("spec") or {}
    taken = stamp if old.get("holderIdentity") != lease.holder else old.get("acquireTime", stamp)
    spec = {
        **old,
        "holderIdentity": lease.holder,
        "leaseDurationSeconds": math.ceil(lease.duration),
        "leaseTransitions": lease.transitions,
        "acquireTime": taken,
        "renewTime": stamp,
    }
    metadata = {**(base.get("metadata") or {}), "namespace": namespace, "name": name}
    metadata.pop("managedFields", None)
    if lease.version:
        metadata["resourceVersion"] = lease.version
    else:
        metadata.pop("resourceVersion", None)
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
