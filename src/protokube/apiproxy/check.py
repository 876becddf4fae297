"""Health check of one API server: GET /readyz over TLS, on a connection that is reused.

A handshake every other second from every machine of a large cluster would keep an API server busy, so a connection is
reused for a while. Not for ever, since it does not show whether new connections are accepted. Any status below 500 is
healthy: the proxy has no credentials, so 401 and 403 are expected.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from contextlib import suppress
from pathlib import Path

PATIENCE = 2.0
LASTS = 30.0
"""Seconds for which one connection is reused."""
LARGEST = 65536
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Checker:
    """Checks one address."""

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
            # asyncio replaces the system's error text by one of its own
            why = (os.strerror(error.errno) if error.errno else str(error) or type(error).__name__).lower()
        except (EOFError, ValueError, asyncio.LimitOverrunError):
            why = "its reply is not HTTP"
        self.close()
        return why

    async def _ask_twice(self) -> str:
        """Retry once on a new connection: the server may have closed the idle one, and that is no failure."""
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
        return f"/readyz answers with status {status}" if status >= 500 else ""

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


def parse_head(head: bytes) -> tuple[int, int | None]:
    """The status, and the length of the body; None if the connection cannot be reused."""
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
        raise ValueError(first)
    fields = {name.strip().lower(): value.strip().lower() for name, _, value in (line.partition(":") for line in lines)}
    length = fields.get("content-length", "")
    kept = length.isdecimal() and version == "HTTP/1.1" and fields.get("connection") != "close"
    return int(rest[:3]), int(length) if kept else None


def _context(ca: Path | None) -> ssl.SSLContext:
    """Load the CA for each connection: it may be replaced while we run."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca is None:  # only liveness matters here; the client verifies the certificate itself
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    else:
        context.load_verify_locations(ca)
    return context
