"""Talk with the API server from several threads at once: bytes out and in, so that a caller decodes only what it uses.

The hard thing is to end: a thread that reads a watch sleeps in the kernel for a minute. `close` and `Watch.hang_up`
shut the socket down below it, which wakes it at once. The other one: certificates on disk are renewed under our feet.
Each request looks whether the files have changed; who is still inside with the old ones may finish.
"""

from __future__ import annotations

import json
import socket
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
from lightkube.core.exceptions import ConfigError

from protokube.errors import InvalidRequest, TryLater
from protokube.kube.client import JSON, MERGE, ApiError, NoAnswer
from protokube.kube.login import Login, Stamp, find_login, stamp_of

PATIENCE = 10.0
CONNECT_PATIENCE = 5.0
SILENCE = 75.0
"""The API server sends a bookmark every minute; a watch that is silent for longer may well be dead."""
SMALL_WAIT = 2.0
"""Seconds that we wait ourselves if a server that has too much to do asks for it."""
BUSY = (429, 500, 502, 503, 504)
NO_LOGIN = (ConfigError, ValueError, KeyError, TypeError)
"""What a plug-in for logging in, or a missing token file, can end in."""


class Conflict(TryLater):
    """Somebody changed it since it was read: it has to be read and decided again."""


class Silent(NoAnswer):
    """A watch is open, and nothing came for longer than a living one would be silent."""


class Watch:
    """The lines of one watch."""

    def __init__(self, answer: httpx2.Response, told: Callable[[], AbstractContextManager[None]]) -> None:
        self._answer, self._told = answer, told
        self._socket: socket.socket | None = answer.extensions["network_stream"].get_extra_info("socket")

    def __iter__(self) -> Iterator[bytes]:
        return lines(self._chunks())

    def _chunks(self) -> Iterator[bytes]:
        chunks = self._answer.iter_bytes()
        while True:
            with self._told():  # around our reading only: what the reader does with a line is not the server's fault
                chunk = next(chunks, None)
            if chunk is None:
                return
            yield chunk

    def hang_up(self) -> None:
        """From any thread: whoever reads finds the end."""
        _shut(self._socket)


class Session:
    """One API server, and who we are to it."""

    def __init__(self, login: Login, *, patience: float = PATIENCE) -> None:
        self._login, self._patience = login, patience
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._doors: set[_Door] = set()
        self._door: _Door | None = None

    @classmethod
    def open(cls, kubeconfig: Path | None = None, context: str | None = None, *, patience: float = PATIENCE) -> Session:
        """InvalidRequest if it is known at once that no request could succeed."""
        session = cls(find_login(kubeconfig, context), patience=patience)
        session._current()
        return session

    def get(self, path: str, query: Mapping[str, str] | None = None, *, patience: float | None = None) -> bytes:
        return self._ask("GET", path, query, patience=patience)

    def create(self, path: str, body: bytes, *, patience: float | None = None) -> bytes:
        return self._ask("POST", path, body=body, patience=patience)

    def replace(self, path: str, body: bytes, *, patience: float | None = None) -> bytes:
        """Conflict, if the body names another version than the server's."""
        return self._ask("PUT", path, body=body, patience=patience)

    def patch(self, path: str, body: bytes, kind: str = MERGE, query: Mapping[str, str] | None = None) -> bytes:
        return self._ask("PATCH", path, query, body=body, kind=kind)

    @contextmanager
    def watch(self, path: str, query: Mapping[str, str], *, silence: float = SILENCE) -> Iterator[Watch]:
        """Silent, if it is; NoAnswer, if it breaks."""
        patience = httpx2.Timeout(self._patience, connect=CONNECT_PATIENCE, read=silence)
        with self._inside() as door:
            request = door.client.build_request("GET", path, params=query, timeout=patience, extensions=door.traced)
            with self._told(path, silence):
                answer = door.client.send(request, stream=True)
            try:
                if answer.status_code != 200:
                    with self._told(path, silence):
                        answer.read()
                    self._judge("watch", path, answer)
                yield Watch(answer, lambda: self._told(path, silence))
            finally:
                with suppress(httpx2.HTTPError, OSError):
                    answer.close()

    def close(self) -> None:
        """From any thread: every request that is under way ends, and none is made again."""
        self._closed.set()
        with self._lock:
            self._leave_door()
            inside = list(self._doors)
        for door in inside:
            door.hang_up()

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: bytes | None = None,
        kind: str = JSON,
        patience: float | None = None,
    ) -> bytes:
        headers = {"Content-Type": kind} if body is not None else {}
        limit = self._patience if patience is None else patience
        timeout = httpx2.Timeout(limit, connect=min(limit, CONNECT_PATIENCE))
        told: Mapping[str, Any] = {"params": query or {}, "content": body, "headers": headers, "timeout": timeout}
        for attempt in (1, 2):
            try:
                with self._inside() as door, self._told(f"{method} {path}", limit):
                    answer = door.client.request(method, path, extensions=door.traced, **told)
            except NoAnswer as why:
                # a connection that the server gave up meanwhile says nothing about the server; silence does
                gave_up = isinstance(why.__cause__, (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError))
                if attempt == 1 and method == "GET" and gave_up and not self._closed.is_set():
                    continue
                raise
            if attempt == 1 and answer.status_code == 429 and self._wait(answer):
                continue
            if answer.status_code >= 300:
                self._judge(method, path, answer)
            return answer.content
        raise AssertionError("unreachable")

    def _wait(self, answer: httpx2.Response) -> bool:
        """Whether the server named a time that is short enough, and we have waited for so long."""
        named = answer.headers.get("Retry-After", "")
        return named.isdecimal() and int(named) <= SMALL_WAIT and not self._closed.wait(int(named))

    def _judge(self, method: str, path: str, answer: httpx2.Response) -> None:
        status, body = answer.status_code, answer.content
        if status == 401:
            with self._lock:
                self._leave_door()  # the next request reads the files again, whatever they look like
        try:
            tree = json.loads(body)
        except ValueError:
            tree = None
        told = tree if isinstance(tree, dict) else {"message": body.decode(errors="replace").strip()[:300]}
        message = f"{method} {path}: {told.get('message') or f'status {status}'}"
        reason = str(told.get("reason", ""))
        if status == 409 and reason != "AlreadyExists":
            raise Conflict(message)
        if status in BUSY:
            raise TryLater(message)
        raise ApiError(status, reason, message)

    @contextmanager
    def _told(self, what: str, patience: float) -> Iterator[None]:
        try:
            yield
        except httpx2.ReadTimeout as error:
            raise Silent(f"{what}: the API server said nothing for {patience:g} s") from error
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            why = "we hung up" if self._closed.is_set() else str(error) or type(error).__name__
            raise NoAnswer(f"{what}: the API server does not answer: {why}") from error
        except NO_LOGIN as error:
            raise TryLater(f"{what}: cannot log in: {str(error) or type(error).__name__}") from error

    @contextmanager
    def _inside(self) -> Iterator[_Door]:
        with self._lock:
            door = self._current()
            door.inside += 1
        try:
            yield door
        finally:
            with self._lock:
                door.inside -= 1
                self._close_empty()

    def _current(self) -> _Door:
        if self._closed.is_set():
            raise NoAnswer("the session with the API server is closed")
        door = self._door
        if door is not None and not door.is_old():
            return door
        try:
            client, stamp = self._login.client(self._patience)
        except InvalidRequest:
            if door is None:
                raise
            return door  # the files are being written just now; what we have may still do
        self._leave_door()
        self._door = _Door(client, stamp, self._closed)
        self._doors.add(self._door)
        return self._door

    def _leave_door(self) -> None:
        self._door = None
        self._close_empty()

    def _close_empty(self) -> None:
        for door in [each for each in self._doors if each is not self._door and not each.inside]:
            self._doors.discard(door)
            door.client.close()


class _Door:
    """One HTTP client. It is closed when it is replaced and nobody is inside any more."""

    def __init__(self, client: httpx2.Client, stamp: Stamp, closed: threading.Event) -> None:
        self.client, self.inside = client, 0
        self.traced = {"trace": self._note}
        self._stamp, self._closed = stamp, closed
        self._files = tuple(Path(name) for name, _, _ in stamp)
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._lock = threading.Lock()

    def is_old(self) -> bool:
        return stamp_of(self._files) != self._stamp

    def hang_up(self) -> None:
        with self._lock:
            for each in list(self._sockets):
                _shut(each)

    def _note(self, event: str, told: Mapping[str, Any]) -> None:
        if event not in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            return
        with self._lock:
            found = told["return_value"].get_extra_info("socket")
            self._sockets.add(found)
        if self._closed.is_set():  # hung up while this one was being made
            _shut(found)


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines only: chunks end anywhere, also within a character."""
    rest: list[bytes] = []
    for chunk in chunks:
        *whole, tail = chunk.split(b"\n")
        for each in whole:
            line = b"".join((*rest, each))
            rest.clear()
            if line.strip():
                yield line
        if tail:
            rest.append(tail)
    if rest:
        raise NoAnswer("the API server hung up in the middle of a line")


def _shut(found: socket.socket | None) -> None:
    """Not the method of TLS sockets: it takes away what the thread that reads is just using."""
    if found is not None:
        with suppress(OSError):
            socket.socket.shutdown(found, socket.SHUT_RDWR)
