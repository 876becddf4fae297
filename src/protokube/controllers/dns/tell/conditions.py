"""Say on pods and services themselves what became of the names that they ask for: a condition of their status.

An Event tells of a moment and is forgotten after an hour; a condition stays for as long as it is true. It is written
only when it changes, one object after the other, and beside what all others keep in the same status.
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
"""Those whose status has conditions."""
BETWEEN = 0.1
"""Seconds between two writes: a first look at a full cluster is no reason to storm its API server."""

log = logging.getLogger("protokube.dns")


class Server(Protocol):
    """What is asked of `protokube.kube.session.Session`."""

    def get(self, path: str) -> bytes: ...

    def patch(self, path: str, body: bytes, kind: str, query: Mapping[str, str]) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Said:
    """What the condition of an object is to say."""

    status: Status
    reason: str
    message: str


def said_of(done: Round) -> dict[str, Said]:
    """By the keys of pods and services; nothing if this round knew nothing."""
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
    told: dict[str, Said] = {}
    for key, source in done.seen.sources.items():
        if key.partition("/")[0] not in KINDS:
            continue
        if key in wrong:
            told[key] = Said("False", "NotSet", "; ".join(wrong[key]))
        elif key in unknown:
            told[key] = Said("Unknown", "ZoneTrouble", "; ".join(unknown[key]))
        elif key in waits:
            told[key] = Said("False", "Waiting", "; ".join(waits[key]))
        else:
            told[key] = Said("True", "Set", ", ".join(sorted({ask.name for ask in source.asks})))
    return told


def _by_source(told: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for source, text in told:
        found[source].add(text)
    return {source: sorted(texts) for source, texts in found.items()}


class Conditions:
    """Takes each round, and returns at once; `run` writes, in a thread of its own."""

    def __init__(self, server: Server, *, between: float = BETWEEN) -> None:
        self._server, self._between = server, between
        self._said: dict[str, Said] = {}
        self._queue: Queue[str] = Queue("conditions", self._write)
        self._stop = threading.Event()

    def __call__(self, done: Round) -> None:
        now = said_of(done)
        if done.routed is None:
            return
        before, self._said = self._said, now
        for key, said in now.items():
            if before.get(key) != said:
                self._queue.add(key)

    def run(self, stop: threading.Event) -> None:
        self._stop = stop
        self._queue.run(stop)

    def wake(self) -> None:
        self._queue.wake()

    def _write(self, key: str) -> float | None:
        said = self._said.get(key)
        if said is None or self._stop.wait(self._between):
            return None
        kind, namespace, name = key.split("/")
        path = f"{CORE}/namespaces/{quote(namespace)}/{KINDS[kind][1]}/{quote(name)}"
        try:
            tree: dict[str, Any] = json.loads(self._server.get(path))
            if body := patch_of(KINDS[kind][0], tree, said, datetime.now(UTC)):
                query = {"fieldManager": MANAGER, "force": "true"}
                self._server.patch(f"{path}/status", json.dumps(body).encode(), APPLY, query)
        except ApiError as error:
            if error.status != 404:  # gone meanwhile
                log.warning("the condition of %s cannot be written: %s", key, error.message)
        return None


def patch_of(kind: str, tree: Mapping[str, Any], said: Said, now: datetime) -> dict[str, Any] | None:
    """What to apply, or nothing if the object says so already."""
    metadata = tree["metadata"]
    observed = (tree.get("status") or {}).get("conditions") or []
    told = with_condition(
        observed, type=TYPE, status=said.status, reason=said.reason, message=said.message,
        now=now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )  # fmt: skip
    if told == observed:
        return None
    named = {name: metadata[name] for name in ("name", "namespace", "uid") if name in metadata}
    ours = [each for each in told if each["type"] == TYPE]
    return {"apiVersion": "v1", "kind": kind, "metadata": named, "status": {"conditions": ours}}
