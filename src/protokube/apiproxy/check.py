"""Does an API server answer? One question over TLS, again and again over one connection.

A handshake every other second from every machine of a large cluster would keep an API server busy, so a connection is
used for a while; not for ever, since it says nothing about whether new ones are taken. Any answer but "I am not ready"
will do: we have no key, and to be turned away is an answer.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from contextlib import suppress
from pathlib import Path

PATIENCE = 2.0
LASTS = 30.0
"""Seconds that one connection is used."""
LARGEST = 65536
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Checker:
    """Asks one address."""

    def __init__(self, address: str, port: int, *, name: str, ca: Path | None) -> None:
        self._address, self._port, self._name, self._ca = address, port, name, ca
        self._streams: Streams | None = None
        self._until = 0.0

    async def check(self) -> str:
        """Why it cannot be used; empty if it can."""
        try:
            return await asyncio.wait_for(self._ask_twice(), PATIENCE)
        except TimeoutError:
            why = f"no answer within {PATIENCE:g} s"
        except ssl.SSLError as error:
            why = f"TLS fails: {getattr(error, 'verify_message', '') or error.reason or error}"
        except OSError as error:
            # asyncio puts a sentence of its own where the system's word should be
            why = (os.strerror(error.errno) if error.errno else str(error) or type(error).__name__).lower()
        except (EOFError, ValueError, asyncio.LimitOverrunError):
            why = "what it answers is no HTTP"
        self.close()
        return why

    async def _ask_twice(self) -> str:
        """A connection that the server gave up meanwhile says nothing about the server."""
        if self._streams is not None and asyncio.get_running_loop().time() < self._until:
            with suppress(OSError, EOFError):
                return await self._ask(*self._streams)
        self.close()
        self._until = asyncio.get_running_loop().time() + LASTS
        self._streams = await asyncio.open_connection(
            self._address, self._port, ssl=_context(self._ca), server_hostname=self._name, limit=LARGEST
        )
        return await self._ask(*self._streams)

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        writer.write(f"GET /readyz HTTP/1.1\r\nHost: {self._name}\r\nUser-Agent: protokube\r\n\r\n".encode())
        await writer.drain()
        status, length = parse_head(await reader.readuntil(b"\r\n\r\n"))
        if length is None or length > LARGEST:
            self.close()
        else:
            await reader.readexactly(length)
        return f"it says that it is not ready (status {status})" if status >= 500 else ""

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


def parse_head(head: bytes) -> tuple[int, int | None]:
    """The status, and how long the body is; None where the connection cannot be used again."""
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
        raise ValueError(first)
    fields = {name.strip().lower(): value.strip().lower() for name, _, value in (line.partition(":") for line in lines)}
    length = fields.get("content-length", "")
    kept = length.isdecimal() and version == "HTTP/1.1" and fields.get("connection") != "close"
    return int(rest[:3]), int(length) if kept else None


def _context(ca: Path | None) -> ssl.SSLContext:
    """Read anew for each connection: an authority may be replaced while we run."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca is None:  # whether it lives does not depend on who it is; the client whose connection we carry looks itself
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    else:
        context.load_verify_locations(ca)
    return context
