"""Fake servers: a gateway is a list of replies, each a function from a connection to bytes."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

Answer = Callable[[socket.socket], None]


def says(document: Any, status: int = 200) -> Answer:
    text = document if isinstance(document, str) else json.dumps(document)
    head = f"HTTP/1.1 {status} x\r\nContent-Length: {len(text.encode())}\r\n\r\n"
    return lambda connection: connection.sendall((head + text).encode())


def fails(message: str, code: int, status: int = 503) -> Answer:
    return says({"error": message, "message": message, "code": code}, status)


def hangs_up(connection: socket.socket) -> None:
    """It dies with the request in its hands."""
    connection.shutdown(socket.SHUT_RDWR)


def is_silent(connection: socket.socket) -> None:
    """It has the request and never answers."""


class Late:
    """It answers, but not before it is told to."""

    def __init__(self, answer: Answer) -> None:
        self._answer, self.go_on = answer, threading.Event()

    def __call__(self, connection: socket.socket) -> None:
        self.go_on.wait()
        self._answer(connection)


def drips(connection: socket.socket) -> None:
    """A byte now and then, for ever."""
    try:
        for letter in b"HTTP/1.1 200 x\r\n" + b"Long: header\r\n" * 1000:
            connection.sendall(bytes([letter]))
            threading.Event().wait(0.02)
    except OSError:
        return


class Gateway:
    """Answers each request by the next answer of its list; the last one again and again."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self.requests: list[tuple[str, Any]] = []
        self.accepted = 0
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.getsockname()[1]}"

    @property
    def connected(self) -> int:
        """Connections that neither side has closed."""
        return sum(each.is_alive() for each in self._threads)

    def hang_up(self) -> None:
        """Drop every connection, as a restart does, and go on listening."""
        while self._connections:
            with suppress(OSError):
                self._connections.pop().shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._server.close()
        self.hang_up()
        for each in self._threads:
            each.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self.accepted += 1
            self._connections.append(connection)
            serving = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            serving.start()
            self._threads.append(serving)

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as lines:
                while request := lines.readline():
                    size = 0
                    while (line := lines.readline()).strip():
                        name, _, value = line.decode().partition(":")
                        size = int(value) if name.lower() == "content-length" else size
                    body = json.loads(lines.read(size)) if size else None
                    self.requests.append((request.decode().split()[1], body))
                    (self._answers.pop(0) if len(self._answers) > 1 else self._answers[0])(connection)
        except (OSError, ValueError):
            return
