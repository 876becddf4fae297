"""A web server that misbehaves on request, and remembers what it was asked."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from fakes.ports import kept_port


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


HANG = Reply(-1)
"""Take the request and say nothing."""
HANG_UP = Reply(-2)
"""Take the request and close the connection."""
CUT = Reply(-3)
"""Promise a body, send half of it, and close the connection."""

NONSENSE = Reply(-4)
"""Answer in another protocol."""

Manners = Callable[[str, str], Reply]
"""From method and path to what the server does."""


class BadServer:
    """The server, in a thread of this process, on a free port of loopback."""

    def __init__(self, manners: Manners | Reply, certificate: Path | None = None) -> None:
        self.asked: list[tuple[str, str]] = []
        self.authorizations: list[str | None] = []
        self._over = threading.Event()
        outer = self
        behave: Manners = (lambda _method, _path: manners) if isinstance(manners, Reply) else manners

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(65537)
                answerable = bool(self.raw_requestline) and self.parse_request()
                self.close_connection = True
                if answerable:
                    self.rfile.read(int(self.headers.get("Content-Length") or 0))
                    outer.asked.append((self.command, self.path))
                    outer.authorizations.append(self.headers.get("Authorization"))
                    self._reply(behave(self.command, self.path))

            def _reply(self, reply: Reply) -> None:
                if reply is HANG:
                    outer._over.wait(20)
                elif reply is NONSENSE:
                    self.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
                elif reply is CUT:
                    self.wfile.write(
                        b'HTTP/1.1 200 OK\r\nETag: "x"\r\nX-Goog-Generation: 1\r\nContent-Length: 9\r\n\r\nhal'
                    )
                elif reply is not HANG_UP:
                    self.send_response(reply.status)
                    # without a word, a client may send its next request into the connection that closes
                    length = {"Content-Length": str(len(reply.body)), "Connection": "close"}
                    for name, value in {**reply.headers, **length}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(reply.body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Tests speak for themselves."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """A client that gave up, or did not trust us; the test knows."""

        self._server = Server(("127.0.0.1", 0), Handler)
        scheme = "http"
        if certificate is not None:
            scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.asked]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def nobody() -> Iterator[str]:
    """The URL of a port of loopback where nothing listens."""
    with kept_port() as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def full_house() -> Iterator[str]:
    """The URL of a port whose queue is full: Linux drops whoever else knocks, so a connection never comes about."""
    import socket

    with socket.socket() as door, socket.socket() as first, socket.socket() as second:
        door.bind(("127.0.0.1", 0))
        door.listen(0)
        for guest in (first, second):
            guest.setblocking(False)
            guest.connect_ex(door.getsockname())
        yield f"http://127.0.0.1:{door.getsockname()[1]}"
