"""Forward ports of the user's 127.0.0.1 to a name and port inside the cloud, so that plain `etcdctl` works.

The name is resolved for each connection, so a forward follows a member to the host that runs it now.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from protokube.errors import TryLater
from protokube.local.base.db import Database, KeptRecords
from protokube.local.host import network

log = logging.getLogger(__name__)

CONNECT_SECONDS, ONE_ADDRESS_SECONDS = 5.0, 1.0
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Forward:
    """From a port of 127.0.0.1 to a name and port inside."""

    name: str
    port: int
    local_port: int


class Forwards:
    """Every forward of one cloud."""

    def __init__(self, database: Database, switch: str) -> None:
        self.database, self.switch = database, switch
        self.records = KeptRecords(database)
        self._servers: dict[tuple[str, int], asyncio.Server] = {}
        self._busy: set[asyncio.Task[None]] = set()

    def everything(self) -> Sequence[Forward]:
        rows = self.database.rows("SELECT * FROM forwards ORDER BY name, port")
        return [Forward(row["name"], row["port"], row["local_port"]) for row in rows]

    async def ensure(self, wanted: Sequence[tuple[str, int]] = ()) -> Sequence[Forward]:
        """Add these forwards; each keeps its local port across restarts of the daemon, unless the port is taken."""
        kept = {(forward.name, forward.port): forward.local_port for forward in self.everything()}
        for name, port in [*kept, *(pair for pair in wanted if pair not in kept)]:
            if (name, port) not in self._servers:
                listener = listen(kept.get((name, port), 0))
                await self._serve(name, port, listener)
        return self.everything()

    async def _serve(self, name: str, port: int, listener: socket.socket) -> None:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._busy.add(task)
            try:
                await self._carry(name, port, reader, writer)
            finally:
                self._busy.discard(task)
                writer.close()

        self._servers[name, port] = await asyncio.start_server(accept, sock=listener)
        with self.database.transaction() as connection:
            values = (name, port, listener.getsockname()[1])
            connection.execute("INSERT OR REPLACE INTO forwards VALUES (?, ?, ?)", values)

    async def _carry(self, name: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.wait_for(self._connect(name, port), CONNECT_SECONDS)
        except (OSError, TimeoutError, TryLater) as why:
            log.info("%s:%d cannot be reached: %s", name, port, why)
            return
        await carry(reader, writer, there)

    async def _connect(self, name: str, port: int) -> socket.socket:
        addresses = list(self.records.addresses(name))
        if not addresses:
            raise TryLater(f"{name} has no address")
        random.shuffle(addresses)
        return await connect_inside(network.switch_path(self.switch), [(address, port) for address in addresses])

    def close(self) -> None:
        for server in self._servers.values():
            server.close()
        for task in self._busy:
            task.cancel()


def listen(port: int) -> socket.socket:
    """Listen on this port or, if it is taken, on any free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError:
        listener.bind((LOOPBACK, 0))
    return listener


async def connect_inside(namespace: Path, addresses: Sequence[tuple[str, int]]) -> socket.socket:
    """Connect in another network namespace: to the first address that answers; the next one if that host just died."""
    failed: BaseException = OSError()
    for address in addresses:
        with network.enter(namespace):
            there = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        there.setblocking(False)
        connecting = asyncio.get_running_loop().sock_connect(there, address)
        try:
            await asyncio.wait_for(connecting, ONE_ADDRESS_SECONDS)
        except (OSError, TimeoutError) as why:
            there.close()
            failed = why
        except BaseException:
            there.close()
            raise
        else:
            return there
    raise failed


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, there: socket.socket) -> None:
    """Copy both directions until both have ended."""
    far_reader, far_writer = await asyncio.open_connection(sock=there)
    try:
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
    finally:
        far_writer.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction until its end; the other may go on."""
    with suppress(OSError):  # besides a reset: a host that died, of which the kernel says so only after a while
        while part := await reader.read(65536):
            writer.write(part)
            await writer.drain()
    with suppress(OSError):
        writer.write_eof()
