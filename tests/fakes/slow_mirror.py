"""A server of one file over a slow link that is cut, on loopback: it counts every byte that it sent."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class SlowMirror:
    """What it serves, how, and what it sent."""

    data: bytes
    bytes_per_second: float
    cut_after: int
    """Bytes of a file per connection."""
    reset: bool = False
    """Whether a cut is a reset, as by a firewall, and not the end of a stream."""
    url: str = ""
    sent: int = 0
    connections: int = 0
    errors: list[str] = field(default_factory=list)

    def answer(self, connection: socket.socket) -> None:
        with connection:
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(4096)
            found = re.search(rb"(?i)range: bytes=(\d+)-", head)
            begin = int(found[1]) if found else 0
            self.connections += 1
            status = "206 Partial Content" if begin else "200 OK"
            lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(self.data) - begin}", "Connection: close"]
            if begin:
                lines.append(f"Content-Range: bytes {begin}-{len(self.data) - 1}/{len(self.data)}")
            connection.sendall("\r\n".join([*lines, "", ""]).encode())
            self._send(connection, self.data[begin : begin + self.cut_after])
            if self.reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    def _send(self, connection: socket.socket, data: bytes) -> None:
        piece = 4096
        for at in range(0, len(data), piece):
            connection.sendall(data[at : at + piece])
            self.sent += len(data[at : at + piece])
            time.sleep(piece / self.bytes_per_second)  # this is the link


@contextmanager
def serving(mirror: SlowMirror) -> Iterator[SlowMirror]:
    server = socket.create_server(("127.0.0.1", 0))
    mirror.url = f"http://127.0.0.1:{server.getsockname()[1]}/file"

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            try:
                mirror.answer(connection)
            except OSError as why:
                mirror.errors.append(str(why))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield mirror
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()
