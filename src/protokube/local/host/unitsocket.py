"""The socket on which the init of a host takes requests: one JSON object per line, one line in reply.

A client may be slow, silent or send garbage: each has its own buffer, a size limit and a timeout.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from protokube.local.base import private
from protokube.local.base.reactor import Reactor

Answer = Mapping[str, object]
SECONDS_PER_CLIENT = 5.0
LONGEST_REQUEST = 65536


class UnitSocket:
    """Serves `answer` at a path for as long as the reactor runs."""

    def __init__(self, path: Path, reactor: Reactor, answer: Callable[[Mapping[str, object]], Answer]) -> None:
        self._reactor, self._answer = reactor, answer
        path.unlink(missing_ok=True)
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        private.bind(self._server, str(path))
        self._server.listen(64)
        reactor.watch(self._server.fileno(), self._accept)

    def _accept(self) -> None:
        try:
            client, _ = self._server.accept()
        except OSError:  # the client left, or no file descriptor is free: neither may end init
            return
        client.setblocking(False)
        buffer = bytearray()
        timer = self._reactor.after(SECONDS_PER_CLIENT, partial(self._close, client))

        def readable() -> None:
            if not self._serve(client, buffer):
                timer.cancel()
                self._close(client)

        self._reactor.watch(client.fileno(), readable)

    def _serve(self, client: socket.socket, buffer: bytearray) -> bool:
        """Read available bytes and answer complete lines; return whether to keep the connection."""
        try:
            more = client.recv(LONGEST_REQUEST)
            buffer += more
            while (end := buffer.find(b"\n")) >= 0:
                line = bytes(buffer[:end])
                del buffer[: end + 1]
                client.send(json.dumps(self._reply(line)).encode() + b"\n")
        except OSError:
            return False
        return bool(more) and len(buffer) < LONGEST_REQUEST

    def _reply(self, line: bytes) -> Answer:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):  # RecursionError: a line of nothing but brackets
            return {"error": "this is not JSON"}
        return self._answer(request) if isinstance(request, dict) else {"error": "ask with a JSON object"}

    def _close(self, client: socket.socket) -> None:
        self._reactor.forget(client.fileno())
        client.close()
