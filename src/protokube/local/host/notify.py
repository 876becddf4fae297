"""Receive sd_notify(3) messages of units; one socket per unit identifies the sender."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path

from protokube.local.base import private
from protokube.local.base.reactor import Reactor


class Notices:
    """The latest notifications of one unit."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self.ready = False
        self.status = ""
        self.watchdog: float | None = None

    def listen(self, path: Path, reactor: Reactor) -> None:
        path.unlink(missing_ok=True)
        server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        private.bind(server, str(path))

        def heard() -> None:
            with suppress(BlockingIOError):
                self.take(server.recv(4096), reactor.now())

        reactor.watch(server.fileno(), heard)
        self.path = path

    def take(self, datagram: bytes, now: float) -> None:
        for line in datagram.decode(errors="replace").splitlines():
            match line.partition("="):
                case ("READY", _, "1"):
                    self.ready = True
                case ("STATUS", _, text):
                    self.status = text
                case ("WATCHDOG", _, "1"):
                    self.watchdog = now

    def forget(self) -> None:
        """Reset after a restart of the unit."""
        self.ready, self.status, self.watchdog = False, "", None

    def snapshot(self, now: float) -> dict[str, object]:
        beat = None if self.watchdog is None else round(now - self.watchdog, 3)
        return {"ready": self.ready, "status": self.status, "watchdog_seconds": beat}
