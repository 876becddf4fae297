"""The embedded DNS server in a thread of its own, for tests, which are not asyncio themselves."""

from __future__ import annotations

import asyncio
import socket
import threading
from types import TracebackType
from typing import Self

from protokube.local.dns.nameserver import DnsServer

Sockets = tuple[socket.socket, socket.socket]
"""UDP and TCP, both bound."""


class DnsThread:
    """Serves from the moment it is made until it is closed."""

    def __init__(self, server: DnsServer, *pairs: Sockets) -> None:
        self._server = server
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="dns", daemon=True)
        self._thread.start()
        for udp, tcp in pairs:
            self.listen(udp, tcp)

    def listen(self, udp: socket.socket, tcp: socket.socket) -> None:
        """Answer on one more pair of sockets; returns when it does."""
        asyncio.run_coroutine_threadsafe(self._server.start(udp, tcp), self._loop).result()

    def close(self) -> None:
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._server.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
