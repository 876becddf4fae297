"""HTTP connections to one API server: as many as threads need at once, and each used again while it is idle.

The hard part is to know which errors say something about the server. One that closed an idle connection did nothing
wrong, so a connection is looked at before it is used again. Any thread may shut all connections down: that wakes the
threads that read from them.
"""

from __future__ import annotations

import http.client
import select
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import quote, urlencode, urlsplit

from protokube.kube.client import JSON
from protokube.kube.credentials import Credentials

KEEP_IDLE = 60.0
"""Seconds for which an idle connection stays open: longer than the interval between two lease renewals."""
HEADERS = {"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": "protokube"}
READ_SIZE = 65_536
IN_PATHS = "/%:@!$&'()*+,;="
"""What stands in a path as it is; callers have quoted their names."""


class Unreached(Exception):
    """No connection, or one that takes no request."""


class Broken(Exception):
    """The connection broke while the request was sent or answered."""


class Unanswered(Exception):
    """The server sent nothing for as long as we were patient."""


BROKEN = (OSError, http.client.HTTPException)


class Answer:
    """The answer to one request; `close` gives the connection back, if the whole body was read."""

    def __init__(self, pool: Pool, connection: http.client.HTTPConnection) -> None:
        self.socket = connection.sock  # before the answer: the connection lets it go if the server will close it
        self._pool, self._connection, self._found = pool, connection, connection.getresponse()
        self.status = self._found.status
        closes = self.header("Connection").lower() == "close"
        if self.status < 200 or (self._found.length is None and not self._found.chunked and not closes):
            # `http.client` takes the end of a connection within the head for the end of the head
            self._found.close()
            raise http.client.HTTPException("the head of its answer is not whole")

    def header(self, name: str) -> str:
        return self._found.headers.get(name, "")

    def read(self) -> bytes:
        """The whole body."""
        with _told():
            return self._found.read()

    def chunk(self) -> bytes:
        """What has arrived, or else what comes next; empty at the end."""
        with _told():
            found = self._found.read1(READ_SIZE)
            if not found and self._found.length:
                raise http.client.IncompleteRead(b"", self._found.length)
            return found

    def close(self) -> None:
        whole = self._found.isclosed()
        self._found.close()
        if whole and not self._found.will_close:
            self._pool.give_back(self._connection)
        else:
            self._connection.close()


class Pool:
    """Connections with the same credentials."""

    def __init__(self, server: str, context: ssl.SSLContext | None, credentials: Credentials) -> None:
        parts = urlsplit(server)
        self._host, self._port = parts.hostname or "", parts.port or (80 if context is None else 443)
        self._before, self._context, self.credentials = parts.path.rstrip("/"), context, credentials
        self._lock = threading.Lock()
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._shut = self._closed = False

    def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: bytes | None = None,
        headers: Mapping[str, str],
        connect: float,
        patience: float,
    ) -> Answer:
        """Send a request and wait for the head of its answer. Raises Unreached, Broken and Unanswered."""
        connection = self._connection(connect)
        target = quote(f"{self._before}{path}", safe=IN_PATHS) + (f"?{urlencode(query)}" if query else "")
        try:
            assert connection.sock is not None
            connection.sock.settimeout(patience)
            try:
                connection.request(method, target, body, {**HEADERS, **headers})
            except TimeoutError as error:
                raise Unreached(_words(error)) from error
            except BROKEN as error:
                raise Broken(_words(error)) from error
            with _told():
                return Answer(self, connection)
        except BaseException:
            connection.close()
            raise

    def give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append((connection, time.monotonic()))
                return
        connection.close()

    def hang_up(self) -> None:
        """Wake every thread that reads, now and later; for good."""
        with self._lock:
            self._shut = True
            for each in list(self._sockets):
                shut(each)

    def close(self) -> None:
        """Close idle connections, and those in use once they are given back."""
        with self._lock:
            self._closed, idle = True, self._idle
            self._idle = []
        for connection, _ in idle:
            connection.close()

    def _connection(self, patience: float) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                found = self._idle.pop() if self._idle else None
            if found is None:
                return self._connected(patience)
            connection, since = found
            if time.monotonic() - since < KEEP_IDLE and connection.sock is not None and not _has_news(connection.sock):
                return connection
            connection.close()

    def _connected(self, patience: float) -> http.client.HTTPConnection:
        plain = http.client.HTTPConnection(self._host, self._port, timeout=patience)
        plain.auto_open = 0  # by itself it would connect without TLS
        try:
            plain.connect()
            assert plain.sock is not None
            if self._context is not None:
                plain.default_port = 443
                plain.sock = self._context.wrap_socket(
                    plain.sock, server_hostname=self._host, do_handshake_on_connect=False
                )
            self._note(plain.sock)
            if isinstance(plain.sock, ssl.SSLSocket):
                plain.sock.do_handshake()
        except (OSError, ValueError) as error:  # ValueError: a name that cannot be in DNS
            plain.close()
            raise Unreached(_words(error)) from error
        return plain

    def _note(self, found: socket.socket) -> None:
        with self._lock:
            self._sockets.add(found)
            if self._shut:  # while this connection was being made
                shut(found)


class _told:  # noqa: N801  # a context manager that costs nothing: it is entered for every chunk
    """Translate errors of reading."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, TimeoutError):
            raise Unanswered from error
        if isinstance(error, (*BROKEN, ValueError, OverflowError)):  # ValueError: another thread closed it
            raise Broken(_words(error)) from error


def shut(found: socket.socket | None) -> None:
    """Shut the plain socket down. The method of TLS sockets would drop the TLS state that the reading thread uses."""
    if found is not None:
        with suppress(OSError):
            socket.socket.shutdown(found, socket.SHUT_RDWR)


def _has_news(found: socket.socket) -> bool:
    """Whether there is something to read from an idle connection: its end, or what nobody asked for."""
    poll = select.poll()
    poll.register(found, select.POLLIN)
    return bool(poll.poll(0))


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
