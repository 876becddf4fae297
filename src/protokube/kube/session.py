"""Requests to the API server from several threads at once: bytes in and out, so that callers decode only what they use.

The first hard part is to end: a thread that reads a watch blocks in the kernel for a minute. `close` and
`Watch.hang_up` shut its socket down, which wakes it at once. The second: certificates on disk are rotated while we run.
Each request checks whether the files have changed; requests that use the old credentials may finish.
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
"""The API server sends a bookmark every minute; a watch that is silent for longer is probably dead."""
SMALL_WAIT = 2.0
"""The longest Retry-After, in seconds, that we wait for ourselves."""
BUSY = (429, 500, 502, 503, 504)
NO_LOGIN = (ConfigError, ValueError, KeyError, TypeError)
"""Errors that a credential plug-in or a missing token file can raise."""


class Conflict(TryLater):
    """The object changed since it was read: read it and decide again."""


class Silent(NoAnswer):
    """The server sent nothing for longer than a healthy watch or request is silent."""


class Watch:
    """The lines of one watch."""

    def __init__(self, answer: httpx2.Response, translated: Callable[[], AbstractContextManager[None]]) -> None:
        self._answer, self._translated = answer, translated
        self._socket: socket.socket | None = answer.extensions["network_stream"].get_extra_info("socket")

    def __iter__(self) -> Iterator[bytes]:
        return lines(self._chunks())

    def _chunks(self) -> Iterator[bytes]:
        chunks = self._answer.iter_bytes()
        while True:
            with self._translated():  # around our read only: an error in the caller is not the server's
                chunk = next(chunks, None)
            if chunk is None:
                return
            yield chunk

    def hang_up(self) -> None:
        """End the watch for its reader; any thread may call this."""
        _shut(self._socket)


class Session:
    """One API server, and our credentials for it."""

    def __init__(self, login: Login, *, patience: float = PATIENCE) -> None:
        self._login, self._patience = login, patience
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._clients: set[_CountedClient] = set()
        self._client: _CountedClient | None = None

    @classmethod
    def open(cls, kubeconfig: Path | None = None, context: str | None = None, *, patience: float = PATIENCE) -> Session:
        """Raises InvalidRequest if the credentials cannot be used."""
        session = cls(find_login(kubeconfig, context), patience=patience)
        session._current()
        return session

    def get(self, path: str, query: Mapping[str, str] | None = None, *, patience: float | None = None) -> bytes:
        return self._ask("GET", path, query, patience=patience)

    def create(self, path: str, body: bytes, *, patience: float | None = None) -> bytes:
        return self._ask("POST", path, body=body, patience=patience)

    def replace(self, path: str, body: bytes, *, patience: float | None = None) -> bytes:
        """Raises Conflict if the resourceVersion in the body is not the server's."""
        return self._ask("PUT", path, body=body, patience=patience)

    def patch(self, path: str, body: bytes, kind: str = MERGE, query: Mapping[str, str] | None = None) -> bytes:
        return self._ask("PATCH", path, query, body=body, kind=kind)

    @contextmanager
    def watch(self, path: str, query: Mapping[str, str], *, silence: float = SILENCE) -> Iterator[Watch]:
        """Raises Silent if nothing arrives for `silence` seconds, NoAnswer if the connection breaks."""
        patience = httpx2.Timeout(self._patience, connect=CONNECT_PATIENCE, read=silence)
        with self._borrowed() as counted:
            request = counted.client.build_request(
                "GET", path, params=query, timeout=patience, extensions=counted.traced
            )
            with self._translated(path, silence):
                answer = counted.client.send(request, stream=True)
            try:
                if answer.status_code != 200:
                    with self._translated(path, silence):
                        answer.read()
                    self._raise_for("watch", path, answer)
                yield Watch(answer, lambda: self._translated(path, silence))
            finally:
                with suppress(httpx2.HTTPError, OSError):
                    answer.close()

    def close(self) -> None:
        """End every request in flight and refuse new ones; any thread may call this."""
        self._closed.set()
        with self._lock:
            self._drop_client()
            open_clients = list(self._clients)
        for counted in open_clients:
            counted.hang_up()

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
        options: Mapping[str, Any] = {"params": query or {}, "content": body, "headers": headers, "timeout": timeout}
        for attempt in (1, 2):
            try:
                with self._borrowed() as counted, self._translated(f"{method} {path}", limit):
                    answer = counted.client.request(method, path, extensions=counted.traced, **options)
            except NoAnswer as why:
                # an idle connection that the server closed says nothing about its health; a timeout does
                gave_up = isinstance(why.__cause__, (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError))
                if attempt == 1 and method == "GET" and gave_up and not self._closed.is_set():
                    continue
                raise
            if attempt == 1 and answer.status_code == 429 and self._wait(answer):
                continue
            if answer.status_code >= 300:
                self._raise_for(method, path, answer)
            return answer.content
        raise AssertionError("unreachable")

    def _wait(self, answer: httpx2.Response) -> bool:
        """Wait for the server's Retry-After if it is short; return whether we did."""
        named = answer.headers.get("Retry-After", "")
        return named.isdecimal() and int(named) <= SMALL_WAIT and not self._closed.wait(int(named))

    def _raise_for(self, method: str, path: str, answer: httpx2.Response) -> None:
        status, body = answer.status_code, answer.content
        if status == 401:
            with self._lock:
                self._drop_client()  # the next request reads the files again, even if their stamp is the same
        try:
            tree = json.loads(body)
        except ValueError:
            tree = None
        details = tree if isinstance(tree, dict) else {"message": body.decode(errors="replace").strip()[:300]}
        message = f"{method} {path}: {details.get('message') or f'status {status}'}"
        reason = str(details.get("reason", ""))
        if status == 409 and reason != "AlreadyExists":
            raise Conflict(message)
        if status in BUSY:
            raise TryLater(message)
        raise ApiError(status, reason, message)

    @contextmanager
    def _translated(self, what: str, patience: float) -> Iterator[None]:
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
    def _borrowed(self) -> Iterator[_CountedClient]:
        with self._lock:
            counted = self._current()
            counted.users += 1
        try:
            yield counted
        finally:
            with self._lock:
                counted.users -= 1
                self._close_unused()

    def _current(self) -> _CountedClient:
        if self._closed.is_set():
            raise NoAnswer("the session with the API server is closed")
        counted = self._client
        if counted is not None and not counted.is_old():
            return counted
        try:
            client, stamp = self._login.client(self._patience)
        except InvalidRequest:
            if counted is None:
                raise
            return counted  # the files are being rewritten; our old credentials may still be valid
        self._drop_client()
        self._client = _CountedClient(client, stamp, self._closed)
        self._clients.add(self._client)
        return self._client

    def _drop_client(self) -> None:
        self._client = None
        self._close_unused()

    def _close_unused(self) -> None:
        for counted in [each for each in self._clients if each is not self._client and not each.users]:
            self._clients.discard(counted)
            counted.client.close()


class _CountedClient:
    """One HTTP client with a count of its users; closed once it is replaced and unused."""

    def __init__(self, client: httpx2.Client, stamp: Stamp, closed: threading.Event) -> None:
        self.client, self.users = client, 0
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

    def _note(self, event: str, details: Mapping[str, Any]) -> None:
        if event not in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            return
        with self._lock:
            found = details["return_value"].get_extra_info("socket")
            self._sockets.add(found)
        if self._closed.is_set():  # closed while this connection was being made
            _shut(found)


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Join chunks into whole lines: a chunk may end anywhere, even within a character."""
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
    """Shut the plain socket down. The method of TLS sockets would drop the TLS state that the reading thread uses."""
    if found is not None:
        with suppress(OSError):
            socket.socket.shutdown(found, socket.SHUT_RDWR)
