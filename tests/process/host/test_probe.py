"""A liveness probe against real servers on loopback."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from builders.certificates import write_certificates
from fakes.ports import kept_port
from protokube.host.probe import SECONDS, probe


class Handler(BaseHTTPRequestHandler):
    """Answers with the status that the path names."""

    def do_GET(self) -> None:
        code = int(self.path.rpartition("/")[2] or 200)
        self.send_response(code)
        self.send_header("Content-Length", "0")
        if 300 <= code < 400:
            self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Not on the screen."""


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def silent(answer: bytes = b"") -> Iterator[int]:
    """Takes connections, and answers no more than this."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken: list[socket.socket] = []

        def take() -> None:
            try:
                while True:
                    connection, _ = server.accept()
                    taken.append(connection)
                    connection.sendall(answer)
            except OSError:
                return

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for each in taken:
            each.close()


@pytest.fixture
def port() -> Iterator[int]:
    with serving() as found:
        yield found


def get(port: int, path: str = "/healthz/200", **fields: Any) -> dict[str, Any]:
    return {"httpGet": {"host": "127.0.0.1", "port": port, "path": path, **fields}}


@pytest.mark.parametrize(
    ("status", "reason"),
    [(200, ""), (204, ""), (302, ""), (399, ""), (400, "it answers with 400"), (404, "it answers with 404"),
     (401, "it answers with 401"), (500, "it answers with 500")],
)  # fmt: skip
def test_the_status_is_the_answer(port: int, status: int, reason: str) -> None:
    assert probe(get(port, f"/healthz/{status}")) == reason


def test_without_a_host_or_a_path_it_is_this_machine_and_the_root(port: int) -> None:
    assert probe({"httpGet": {"port": port}}) == ""
    assert probe({"httpGet": {"port": port, "host": "", "path": ""}}) == ""
    assert probe({"tcpSocket": {"port": port}}) == ""


def test_a_certificate_that_nobody_signed_is_good_enough(tmp_path: Path) -> None:
    wanted = {"authority": "ca", "organizations": [], "names": ["elsewhere"], "usages": ["server auth"]}
    write_certificates(tmp_path / "keys", {"server": {**wanted, "commonName": "elsewhere"}})
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "keys/server.crt", tmp_path / "keys/server.key")
    with serving(context) as port:
        assert probe(get(port, scheme="HTTPS")) == ""
        assert probe(get(port, "/healthz/500", scheme="HTTPS")) == "it answers with 500"


def test_a_server_without_tls_has_no_https(port: int) -> None:
    assert probe(get(port, scheme="HTTPS")) != ""


@pytest.mark.parametrize("kind", ["httpGet", "tcpSocket"])
def test_a_port_where_nobody_listens_is_refused(kind: str) -> None:
    with kept_port() as port:
        assert probe({kind: {"port": port}}) == "connection refused"


def test_a_server_that_hangs_is_not_waited_for_much_longer_than_the_limit() -> None:
    with silent() as port:
        began = time.monotonic()
        reason = probe(get(port))

        assert reason == "timed out"
        assert SECONDS <= time.monotonic() - began < 4 * SECONDS
        assert probe({"tcpSocket": {"port": port}}) == "", "it takes connections"


@pytest.mark.parametrize("answer", [b"\x15\x03\x01", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 abc\r\n\r\n"])
def test_what_is_no_answer_is_a_reason_in_words(answer: bytes) -> None:
    with silent(answer) as port:
        assert probe(get(port)) not in ("", None)
