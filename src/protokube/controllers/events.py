"""Tell the owners of objects what became of them, by Events. Nobody waits for it, and if it fails, nothing happens."""

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

from protokube.controllers.guard import guarded
from protokube.controllers.telling import Memory, News, Told
from protokube.kube.client import ApiError

WAITING = 1000
"""News that wait to be written; what comes on top is lost."""
MESSAGE_LIMIT = 1024
"""What the API server takes."""

log = logging.getLogger(__name__)


class Server(Protocol):
    """What is asked of `protokube.kube.session.Session`."""

    def create(self, path: str, body: bytes) -> bytes: ...
    def patch(self, path: str, body: bytes) -> bytes: ...


class Events:
    """Events of one component. `tell` returns at once; one thread runs it and writes."""

    def __init__(self, server: Server, component: str, host: str = "") -> None:
        self._server = server
        self._source = {"component": component} | ({"host": host} if host else {})
        self._waiting: queue.Queue[News | None] = queue.Queue(WAITING)
        self._memory = Memory()

    def tell(self, news: News) -> None:
        try:
            self._waiting.put_nowait(news)
        except queue.Full:
            log.debug("too much news at once: %s", news)

    def wake(self) -> None:
        """Whoever waits looks whether it is to stop."""
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            return  # it is not waiting

    def run(self, stop: threading.Event) -> None:
        """Until `stop` is set and `wake` was called."""
        while not stop.is_set():
            if (news := self._waiting.get()) is None:
                continue
            if trouble := guarded(f"event {news.reason}", partial(self._write, news)):
                log.info("event %s about %s %s: %s", news.reason, news.about.kind, news.about.name, trouble)

    def _write(self, news: News) -> None:
        now = time.monotonic()
        if not self._memory.may_tell(news.about, now):
            return
        told = self._memory.already(news, now)
        if told is not None and self._count_up(news, told):
            return
        name = f"{news.about.name}.{secrets.token_hex(8)}"
        self._server.create(_folder(news), json.dumps(event_tree(news, name, self._source, _stamp())).encode())
        self._memory.note(news, Told(name, 1, now))

    def _count_up(self, news: News, told: Told) -> bool:
        count = told.count + 1
        try:
            body = {"count": count, "lastTimestamp": _stamp()}
            self._server.patch(f"{_folder(news)}/{told.name}", json.dumps(body).encode())
        except ApiError as error:
            if error.status != 404:
                raise
            self._memory.forget(news)  # the API server forgot it first
            return False
        self._memory.note(news, Told(told.name, count, told.first))
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
    return news.about.namespace or "default"  # where Events of objects without a namespace belong


def _folder(news: News) -> str:
    return f"/api/v1/namespaces/{_namespace(news)}/events"


def _stamp() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
