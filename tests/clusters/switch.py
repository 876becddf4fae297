"""A real switch with servers in it, and a database that says where names lead."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from protokube.local.base.db import Database, KeptRecords
from protokube.local.base.paths import Paths
from protokube.local.cloud.ports import Forwards
from protokube.local.host import network
from protokube.records import Change, Record

NAME = "etcd-a.internal.dev"


class Switch:
    """A switch with servers in it, and a database that says where names lead."""

    def __init__(self, folder: Path) -> None:
        self.paths = Paths.at(folder / "dev")
        self.paths.create()
        self.database = Database(self.paths.database)
        network.make_switch(self.paths.switch)
        self.servers: list[socket.socket] = []

    def serve(self, address: str, talk: Callable[[socket.socket], None], port: int = 7000) -> None:
        """Have every connection to this address inside talked to."""
        with network.enter(network.switch_path(self.paths.switch)):
            listener = socket.create_server((address, port))
        self.servers.append(listener)
        threading.Thread(target=self._accept, args=(listener, talk), daemon=True).start()

    def _accept(self, listener: socket.socket, talk: Callable[[socket.socket], None]) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(10)
                talk(connection)

    def point(self, *addresses: str, name: str = NAME) -> None:
        after = Record(name=name, type="A", values=addresses, ttl=5) if addresses else None
        before = Record(name=name, type="A", values=("10.77.0.1",), ttl=5)
        KeptRecords(self.database).save([Change(before=before, after=after, why="a test")])

    def run(self, story: Callable[[Forwards], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            forwards = Forwards(self.database, self.paths.switch)
            try:
                await story(forwards)
            finally:
                forwards.close()

        asyncio.run(whole())

    def close(self) -> None:
        for server in self.servers:
            server.shutdown(socket.SHUT_RDWR)
            server.close()
        network.remove_switch(self.paths.switch)
        self.database.close()
