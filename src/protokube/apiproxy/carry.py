"""One connection of a client, carried over another one to an API server, byte by byte in both directions.

What is on its way is bounded: who reads slowly is written to slowly. Where one side breaks, the other one is told by a
reset, so that nobody waits for an answer that cannot come.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress

PART = 65536
SILENT_AFTER, ASK_EVERY, ASK_TIMES = 5, 3, 3
GIVE_UP_MS = 15_000
"""How long what we sent may stay unconfirmed: the kernel ends what leads to a machine that is gone."""


class Carried:
    """Both connections of one client."""

    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self._writers = (near, far)

    async def run(self, near: asyncio.StreamReader, far: asyncio.StreamReader) -> None:
        """Until both sides have ended, or one breaks."""
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
        """End both at once."""
        for writer in self._writers:
            reset(writer)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One direction, until it ends; the other may go on."""
    while part := await reader.read(PART):
        writer.write(part)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection so that the far side knows at once; what was not sent yet is lost."""
    with suppress(OSError):  # it may be closed already
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def keep_an_eye_on(writer: asyncio.StreamWriter) -> None:
    """Have the kernel find out by itself that the far machine is gone."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENT_AFTER)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, ASK_EVERY)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, ASK_TIMES)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GIVE_UP_MS)
