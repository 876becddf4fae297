"""Write Kubernetes Events from a background thread. Best effort: callers never wait, and a failed write is dropped."""

from __future__ import annotations

import datetime as dt
import json
import logging
import queue
import secrets
import threading
import time
from functools import partial
from typing import Any, Protocol

from protokube.controllers.event_correlator import EventCorrelator, News, WrittenEvent
from protokube.controllers.guard import guarded
from protokube.kube.client import ApiError

WAITING = 1000
"""Size of the queue; news that does not fit is dropped."""
MESSAGE_LIMIT = 1024
"""The API server accepts no longer message."""

log = logging.getLogger(__name__)


class EventApi(Protocol):
    """Create and patch Events; `protokube.kube.session.Session` implements it."""

    def create(self, path: str, body: bytes) -> bytes: ...
    def patch(self, path: str, body: bytes) -> bytes: ...


class Events:
    """The Events of one component. `tell` queues and returns at once; one thread calls `run`, which writes."""

    def __init__(self, server: EventApi, component: str, host: str = "") -> None:
        self._server = server
        self._source = {"component": component} | ({"host": host} if host else {})
        self._waiting: queue.Queue[News | None] = queue.Queue(WAITING)
        self._correlator = EventCorrelator()

    def tell(self, news: News) -> None:
        try:
            self._waiting.put_nowait(news)
        except queue.Full:
            log.debug("too much news at once: %s", news)

    def wake(self) -> None:
        """Make `run` check its `stop` event."""
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            return  # `run` has work, so it checks anyway

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set and `wake` was called."""
        while not stop.is_set():
            if (news := self._waiting.get()) is None:
                continue
            if trouble := guarded(f"event {news.reason}", partial(self._write, news)):
                log.info("event %s about %s %s: %s", news.reason, news.about.kind, news.about.name, trouble)

    def _write(self, news: News) -> None:
        now = time.monotonic()
        if not self._correlator.allow(news.about, now):
            return
        written = self._correlator.recent(news, now)
        if written is not None and self._count_up(news, written):
            return
        name = f"{news.about.name}.{secrets.token_hex(8)}"
        self._server.create(_folder(news), json.dumps(event_tree(news, name, self._source, _stamp())).encode())
        self._correlator.note(news, WrittenEvent(name, 1, now))

    def _count_up(self, news: News, written: WrittenEvent) -> bool:
        count = written.count + 1
        try:
            body = {"count": count, "lastTimestamp": _stamp()}
            self._server.patch(f"{_folder(news)}/{written.name}", json.dumps(body).encode())
        except ApiError as error:
            if error.status != 404:
                raise
            self._correlator.forget(news)  # the API server has expired it
            return False
        self._correlator.note(news, WrittenEvent(written.name, count, written.first))
        return True


def event_tree(news: News, name: str, source: dict[str, str], stamp: str) -> dict[str, Any]:
    about = news.about
    involved = {"apiVersion": about.api_version, "kind": about.kind, "name": about.name}
    involved |= {key: value for key, value in (("namespace", about.namespace), ("uid", about.uid)) if value}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": _namespace(news)},
        "involvedObject": involved,
        "type": news.type,
        "reason": news.reason,
        "message": news.message[:MESSAGE_LIMIT],
        "source": source,
        "count": 1,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
    }


def _namespace(news: News) -> str:
    return news.about.namespace or "default"  # Events of cluster-scoped objects belong there


def _folder(news: News) -> str:
    return f"/api/v1/namespaces/{_namespace(news)}/events"


def _stamp() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
