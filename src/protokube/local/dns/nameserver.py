"""The embedded authoritative DNS server: the resolver of every host of the local cloud, updated by the agents.

Updates are durable before they take effect: each is saved, then published, then acknowledged, one at a time. Queries
do not wait for updates: they are answered from the current zone. Replies are cached until the next change, since the
hosts of a cluster repeat the same few queries. Queries for other zones go to the forwarder, if there is one, and only
from the sockets for hosts.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sqlite3
from collections.abc import Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, cast

import dns.message
import dns.name
import dns.rdataclass
import dns.rdatatype
import dns.update
from dns.rcode import Rcode

from protokube.errors import ProtokubeError
from protokube.local.dns.answer import EarlyReply, answer, make_keyring, read_request, respond, to_wire, transfer
from protokube.local.dns.forward import Forwarder
from protokube.local.dns.update import UpdateRefused, carry_out
from protokube.local.dns.zone import Persist, load_zones
from protokube.providers.dns.keys import TsigKey

log = logging.getLogger(__name__)

IDLE_SECONDS = 10.0
MOST_CONNECTIONS = 256
MOST_CACHED = 4096
TRANSFERS = (dns.rdatatype.AXFR, dns.rdatatype.IXFR)
SAVE_ERRORS = (ProtokubeError, OSError, sqlite3.Error)
Work = partial[Coroutine[Any, Any, bytes]]
"""A coroutine function that produces the only reply."""


class DnsServer:
    """Serves zones on bound sockets; `address` is that of the name in the zones' NS record."""

    def __init__(
        self,
        zones: Sequence[str],
        keys: Sequence[TsigKey],
        persist: Persist,
        *,
        address: str | None = None,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._persist, self._idle_seconds = persist, idle_seconds
        self._keyring = make_keyring(keys)
        self._zones, made = load_zones(zones, persist.load(), address)
        if made:
            persist.save(made)
        self.forwarder: Forwarder | None = None
        self._cached: dict[tuple[bool, bytes], bytes] = {}
        self._writing = asyncio.Lock()
        self._listeners: list[asyncio.DatagramTransport | asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._clients: set[asyncio.StreamWriter] = set()

    async def start(self, udp: socket.socket, tcp: socket.socket, *, forwards: bool = False) -> None:
        """Serve on one more pair of bound sockets, and own them; `forwards`: forward queries for other zones."""
        loop = asyncio.get_running_loop()
        udp.setblocking(False)
        transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self, forwards), sock=udp)
        self._listeners += [transport, await asyncio.start_server(partial(self._serve, forwards), sock=tcp)]

    async def close(self) -> None:
        for listener in self._listeners:
            for accepting in listener.sockets if isinstance(listener, asyncio.Server) else ():
                asyncio.get_running_loop().remove_reader(accepting.fileno())
        await _run_callbacks()  # else a connection that was just accepted would leak in the closed server
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._clients:
            writer.transport.abort()
        await _run_callbacks()

    def receive(self, wire: bytes, *, tcp: bool, forwards: bool = False) -> Iterable[bytes] | Work:
        """The replies to one message, or the coroutine function that produces its only reply."""
        cached = self._cached.get((tcp, wire[2:]))
        if cached is not None:
            return (wire[:2] + cached,)
        try:
            request = read_request(wire, self._keyring)
        except EarlyReply as done:
            return (done.wire,) if done.wire else ()
        if isinstance(request, dns.update.UpdateMessage):
            return partial(self.update, request)
        if any(question.rdtype in TRANSFERS for question in request.question):
            return self._transfer(request, tcp=tcp)
        if forwards and self.forwarder is not None and self.forwarder.takes(request, self._zones.keys()):
            return partial(self._forward, self.forwarder, wire, request, tcp=tcp)
        response = answer(request, self._zones)
        reply = to_wire(response, request, tcp=tcp)
        if not request.had_tsig and response.rcode() != Rcode.REFUSED:  # a refusal depends on socket and forwarder
            self._cache_reply(tcp, wire, reply)
        return (reply,)

    async def _forward(self, forwarder: Forwarder, wire: bytes, request: dns.message.Message, *, tcp: bool) -> bytes:
        reply = await forwarder.ask(wire, tcp=tcp)
        return reply or to_wire(respond(request, Rcode.SERVFAIL), request, tcp=tcp)

    async def update(self, request: dns.update.UpdateMessage) -> bytes:
        """Apply a signed update; reply when it is saved."""
        try:
            await self._apply(request)
            code = Rcode.NOERROR
        except UpdateRefused as refused:
            code = refused.code
        except SAVE_ERRORS:
            log.exception("an update could not be saved, so it was not applied")
            code = Rcode.SERVFAIL
        return to_wire(respond(request, code), request, tcp=True)

    async def _apply(self, request: dns.update.UpdateMessage) -> None:
        if not request.had_tsig:
            raise UpdateRefused(Rcode.REFUSED)
        if len(request.zone) != 1:
            raise UpdateRefused(Rcode.FORMERR)
        async with self._writing:
            origin = request.zone[0].name
            before = self._zones.get(origin)
            if before is None or request.zone[0].rdclass != dns.rdataclass.IN:
                raise UpdateRefused(Rcode.NOTAUTH)
            after = carry_out(before, request)
            if after is not before:
                await asyncio.to_thread(self._persist.save, before.changes_to(after))
                self._zones = {**self._zones, origin: after}
                self._cached.clear()

    def _transfer(self, request: dns.message.Message, *, tcp: bool) -> Iterable[bytes]:
        if not (tcp and request.had_tsig):
            return (to_wire(respond(request, Rcode.REFUSED), request, tcp=tcp),)
        zone = self._zones.get(request.question[0].name)
        if zone is None or len(request.question) != 1:
            return (to_wire(respond(request, Rcode.NOTAUTH), request, tcp=tcp),)
        return transfer(request, zone)

    def _cache_reply(self, tcp: bool, wire: bytes, reply: bytes) -> None:
        if len(self._cached) >= MOST_CACHED:
            self._cached.clear()
        self._cached[tcp, wire[2:]] = reply[2:]

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task that is cancelled when the server closes."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _serve(self, forwards: bool, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        self.run(self._connection(reader, writer, forwards=forwards))

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, forwards: bool) -> None:
        try:
            while len(self._clients) <= MOST_CONNECTIONS:
                async with asyncio.timeout(self._idle_seconds):
                    length = int.from_bytes(await reader.readexactly(2), "big")
                    received = self.receive(await reader.readexactly(length), tcp=True, forwards=forwards)
                for reply in (await received(),) if isinstance(received, partial) else received:
                    writer.write(len(reply).to_bytes(2, "big") + reply)
                    async with asyncio.timeout(self._idle_seconds):
                        await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            log.debug("a client went away")
        self._clients.discard(writer)
        writer.close()


async def _run_callbacks() -> None:
    """Let the event loop run deferred callbacks of asyncio: accepting a connection, closing a socket."""
    for _ in range(8):
        await asyncio.sleep(0)


class _Datagrams(asyncio.DatagramProtocol):
    """The UDP side of the server."""

    def __init__(self, server: DnsServer, forwards: bool) -> None:
        self._server, self._forwards = server, forwards
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        received = self._server.receive(data, tcp=False, forwards=self._forwards)
        if isinstance(received, partial):
            self._server.run(self._work(received, addr))
        else:
            for reply in received:
                self._send(reply, addr)

    async def _work(self, work: Work, addr: tuple[str | Any, int]) -> None:
        self._send(await work(), addr)

    def _send(self, reply: bytes, addr: tuple[str | Any, int]) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(reply, addr)
