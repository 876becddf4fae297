"""Requests to the API server from several threads at once: bytes in and out, so that callers decode only what they use.

The first hard part is to end: a thread that reads a watch blocks in the kernel for a minute. `close` and
`Watch.hang_up` shut its socket down, which wakes it at once. The second: certificates on disk are rotated while we run.
Each request checks whether the files have changed; requests that use the old credentials may finish.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType

from protokube.errors import InvalidRequest, TryLater
from protokube.kube.client import JSON, MERGE, ApiError, NoAnswer
from protokube.kube.credentials import NoLogin
from protokube.kube.login import Login, Stamp, find_login, stamp_of
from protokube.kube.pool import Answer, Broken, Pool, Unanswered, Unreached, shut

PATIENCE = 10.0
CONNECT_PATIENCE = 5.0
SILENCE = 75.0
"""The API server sends a bookmark every minute; a watch that is silent for longer is probably dead."""
SMALL_WAITS = ("0", "1", "2")
"""A Retry-After, in seconds, that we wait for ourselves."""
BUSY = (429, 500, 502, 503, 504)


class Conflict(TryLater):
    """The object changed since it was read: read it and decide again."""


class Silent(NoAnswer):
    """The server sent nothing for longer than a healthy watch or request is silent."""


class Watch:
    """The lines of one watch."""

    def __init__(self, answer: Answer, translated: Callable[[], AbstractContextManager[None]]) -> None:
        self._answer, self._translated, self._socket = answer, translated, answer.socket

    def __iter__(self) -> Iterator[bytes]:
        return lines(self._chunks())

    def _chunks(self) -> Iterator[bytes]:
        while True:
            with self._translated():  # around our read only: an error in the caller is not the server's
                chunk = self._answer.chunk()
            if not chunk:
                return
            yield chunk

    def hang_up(self) -> None:
        """End the watch for its reader; any thread may call this."""
        shut(self._socket)


class Session:
    """One API server, and our credentials for it."""

    def __init__(self, login: Login, *, patience: float = PATIENCE) -> None:
        self._login, self._patience = login, patience
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._pools: set[_CountedPool] = set()
        self._pool: _CountedPool | None = None

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
        with self._borrowed() as pool:
            with self._translated(path, silence):
                answer = _sent(pool, "GET", path, query, connect=CONNECT_PATIENCE, patience=silence)
            try:
                if answer.status != 200:
                    with self._translated(path, silence):
                        body = answer.read()
                    self._raise_for("watch", path, answer.status, body)
                yield Watch(answer, lambda: self._translated(path, silence))
            finally:
                answer.close()

    def close(self) -> None:
        """End every request in flight and refuse new ones; any thread may call this."""
        self._closed.set()
        with self._lock:
            self._drop_pool()
            open_pools = list(self._pools)
        for counted in open_pools:
            counted.pool.hang_up()

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
        for attempt in (1, 2):
            try:
                with self._borrowed() as pool, self._translated(f"{method} {path}", limit):
                    answer = _sent(
                        pool, method, path, query or {}, body=body, headers=headers,
                        connect=min(limit, CONNECT_PATIENCE), patience=limit,
                    )  # fmt: skip
                    try:
                        content = answer.read()
                    finally:
                        answer.close()
            except NoAnswer as why:
                # a connection that was cut off says nothing about the server's health; a timeout does
                if attempt == 1 and method == "GET" and isinstance(why.__cause__, Broken) and not self._closed.is_set():
                    continue
                raise
            if attempt == 1 and answer.status == 429 and self._wait(answer):
                continue
            if answer.status >= 300:
                self._raise_for(method, path, answer.status, content)
            return content
        raise AssertionError("unreachable")

    def _wait(self, answer: Answer) -> bool:
        """Wait for the server's Retry-After if it is short; return whether we did."""
        named = answer.header("Retry-After")
        return named in SMALL_WAITS and not self._closed.wait(int(named))

    def _raise_for(self, method: str, path: str, status: int, body: bytes) -> None:
        if status == 401:
            with self._lock:
                self._drop_pool()  # the next request reads the files again, even if their stamp is the same
        try:
            tree = json.loads(body)
        except (ValueError, RecursionError):
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
        except Unanswered as error:
            raise Silent(f"{what}: the API server said nothing for {patience:g} s") from error
        except (Unreached, Broken) as error:
            why = "we hung up" if self._closed.is_set() else str(error)
            raise NoAnswer(f"{what}: the API server does not answer: {why}") from error
        except NoLogin as error:
            raise TryLater(f"{what}: cannot log in: {error}") from error

    @contextmanager
    def _borrowed(self) -> Iterator[Pool]:
        with self._lock:
            counted = self._current()
            counted.users += 1
        try:
            yield counted.pool
        finally:
            with self._lock:
                counted.users -= 1
                self._close_unused()

    def _current(self) -> _CountedPool:
        if self._closed.is_set():
            raise NoAnswer("the session with the API server is closed")
        counted = self._pool
        if counted is not None and not counted.is_old():
            return counted
        try:
            pool, stamp = self._login.pool()
        except InvalidRequest:
            if counted is None:
                raise
            return counted  # the files are being rewritten; our old credentials may still be valid
        self._drop_pool()
        self._pool = _CountedPool(pool, stamp)
        self._pools.add(self._pool)
        return self._pool

    def _drop_pool(self) -> None:
        self._pool = None
        self._close_unused()

    def _close_unused(self) -> None:
        for counted in [each for each in self._pools if each is not self._pool and not each.users]:
            self._pools.discard(counted)
            counted.pool.close()


class _CountedPool:
    """The connections of one set of credentials with a count of their users; closed once replaced and unused."""

    def __init__(self, pool: Pool, stamp: Stamp) -> None:
        self.pool, self.users, self._stamp = pool, 0, stamp
        self._files = tuple(Path(name) for name, _, _ in stamp)

    def is_old(self) -> bool:
        return stamp_of(self._files) != self._stamp


def _sent(
    pool: Pool,
    method: str,
    path: str,
    query: Mapping[str, str],
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] = MappingProxyType({}),
    connect: float,
    patience: float,
) -> Answer:
    """The answer; a login that is refused is renewed once, if it can be."""

    def send(login: Mapping[str, str]) -> Answer:
        return pool.ask(
            method, path, query, body=body, headers={**headers, **login}, connect=connect, patience=patience
        )

    login = pool.credentials.headers()
    answer = send(login)
    if answer.status != 401 or not pool.credentials.renewable:
        return answer
    answer.read()
    answer.close()
    return send(pool.credentials.headers(refused=login["Authorization"]))


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
