"""Report the state of a pod's or service's DNS names as a condition in its own status.

An Event reports a moment and expires after an hour; a condition stays for as long as it is true. We write it only when
it changes, one object at a time, by server-side apply, so that the conditions of others stay.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import quote

from protokube.controllers.conditions import Status, with_condition
from protokube.controllers.dns.controller import Round
from protokube.controllers.dns.decide.desired import source_of
from protokube.controllers.dns.read.watching import CORE
from protokube.controllers.dns.tell.unmet import unmet
from protokube.controllers.queue import Queue
from protokube.kube.client import APPLY, ApiError

TYPE = "protokube.io/DNS"
MANAGER = "protokube-dns-controller"
KINDS = {"pod": ("Pod", "pods"), "service": ("Service", "services")}
"""The kinds whose status has conditions."""
BETWEEN = 0.1
"""Seconds between two writes, so that the first round in a large cluster does not flood its API server."""

log = logging.getLogger("protokube.dns")


class StatusApi(Protocol):
    """Read objects and patch their status; `protokube.kube.session.Session` implements it."""

    def get(self, path: str) -> bytes: ...

    def patch(self, path: str, body: bytes, kind: str, query: Mapping[str, str]) -> bytes: ...


@dataclass(frozen=True, slots=True)
class DesiredCondition:
    """The content that the condition of an object should have."""

    status: Status
    reason: str
    message: str


def desired_conditions(done: Round) -> dict[str, DesiredCondition]:
    """The conditions by key of pod or service; empty if the round decided nothing."""
    if done.routed is None or done.seen is None:
        return {}
    wrong = _by_source((each.source, f"{each.name}: {each.why}" if each.name else each.why) for each in unmet(done))
    waits = _by_source((each.source, f"{each.name}: {each.why}") for each in done.routed.pending)
    unknown = _by_source(
        (source_of(want.by), f"zone {outcome.zone.name}: {outcome.trouble}")
        for outcome in done.zones
        if outcome.trouble
        for want in done.routed.wants[outcome.zone]
    )
    found: dict[str, DesiredCondition] = {}
    for key, source in done.seen.sources.items():
        if key.partition("/")[0] not in KINDS:
            continue
        if key in wrong:
            found[key] = DesiredCondition("False", "NotSet", "; ".join(wrong[key]))
        elif key in unknown:
            found[key] = DesiredCondition("Unknown", "ZoneTrouble", "; ".join(unknown[key]))
        elif key in waits:
            found[key] = DesiredCondition("False", "Waiting", "; ".join(waits[key]))
        else:
            found[key] = DesiredCondition("True", "Set", ", ".join(sorted({ask.name for ask in source.asks})))
    return found


def _by_source(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for source, text in pairs:
        found[source].add(text)
    return {source: sorted(texts) for source, texts in found.items()}


class Conditions:
    """Called with each round, and returns at once; `run` writes, in a thread of its own."""

    def __init__(self, server: StatusApi, *, between: float = BETWEEN) -> None:
        self._server, self._between = server, between
        self._desired: dict[str, DesiredCondition] = {}
        self._queue: Queue[str] = Queue("conditions", self._write)
        self._stop = threading.Event()

    def __call__(self, done: Round) -> None:
        now = desired_conditions(done)
        if done.routed is None:
            return
        before, self._desired = self._desired, now
        for key, desired in now.items():
            if before.get(key) != desired:
                self._queue.add(key)

    def run(self, stop: threading.Event) -> None:
        self._stop = stop
        self._queue.run(stop)

    def wake(self) -> None:
        self._queue.wake()

    def _write(self, key: str) -> float | None:
        desired = self._desired.get(key)
        if desired is None or self._stop.wait(self._between):
            return None
        kind, namespace, name = key.split("/")
        path = f"{CORE}/namespaces/{quote(namespace)}/{KINDS[kind][1]}/{quote(name)}"
        try:
            tree: dict[str, Any] = json.loads(self._server.get(path))
            if body := patch_of(KINDS[kind][0], tree, desired, datetime.now(UTC)):
                query = {"fieldManager": MANAGER, "force": "true"}
                self._server.patch(f"{path}/status", json.dumps(body).encode(), APPLY, query)
        except ApiError as error:
            if error.status != 404:  # 404: the object was deleted meanwhile
                log.warning("the condition of %s cannot be written: %s", key, error.message)
        return None


def patch_of(kind: str, tree: Mapping[str, Any], desired: DesiredCondition, now: datetime) -> dict[str, Any] | None:
    """The patch to apply, or None if the object already has this condition."""
    metadata = tree["metadata"]
    observed = (tree.get("status") or {}).get("conditions") or []
    conditions = with_condition(
        observed, type=TYPE, status=desired.status, reason=desired.reason, message=desired.message,
        now=now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )  # fmt: skip
    if conditions == observed:
        return None
    named = {name: metadata[name] for name in ("name", "namespace", "uid") if name in metadata}
    ours = [each for each in conditions if each["type"] == TYPE]
    return {"apiVersion": "v1", "kind": kind, "metadata": named, "status": {"conditions": ours}}
