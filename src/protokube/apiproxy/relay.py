"""Copy bytes between a client's connection and a connection to an API server, in both directions.

Buffers are bounded: a slow reader slows its writer down. If one connection breaks, the other one is reset, so that its
peer does not wait for a reply that cannot come.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress

CHUNK = 65536
SILENT_AFTER, ASK_EVERY, ASK_TIMES = 5, 3, 3
GIVE_UP_MS = 15_000
"""How long sent data may stay unacknowledged until the kernel closes the connection: the machine is gone."""


class Relay:
    """One client's connection and its connection to an API server."""

    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self._writers = (near, far)

    async def run(self, near: asyncio.StreamReader, far: asyncio.StreamReader) -> None:
        """Copy until both sides have ended, or one breaks."""
        near_writer, far_writer = self._writers
        pumps = [asyncio.ensure_future(pump(near, far_writer)), asyncio.ensure_future(pump(far, near_writer))]
        try:
            await asyncio.gather(*pumps)
        except OSError:
            self.reset()
        finally:
            for each in pumps:
                each.cancel()
            for writer in self._writers:
                writer.close()

    def reset(self) -> None:
        """Reset both connections at once."""
        for writer in self._writers:
            reset(writer)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction until it ends; the other may go on."""
    while part := await reader.read(CHUNK):
        writer.write(part)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection with a TCP reset; data that is not sent yet is lost."""
    with suppress(OSError):  # it may be closed already
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def enable_keepalive(writer: asyncio.StreamWriter) -> None:
    """Turn TCP keepalive on, so that the kernel notices a machine that is gone."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENT_AFTER)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, ASK_EVERY)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, ASK_TIMES)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GIVE_UP_MS)
