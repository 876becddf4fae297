"""Forward queries for names outside of the cluster to the resolvers of the user's machine, from the user's network.

A query is forwarded unchanged except for its id, and so is the reply, so EDNS and DNSSEC work end to end. The
transport stays the same: if a UDP reply is truncated, the host retries over TCP. Every query has its own socket, so
that the source port of the awaited reply cannot be guessed.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field

import dns.name
from dns.message import Message
from dns.rcode import Rcode

from protokube.local.dns.policy import Policy
from protokube.local.dns.resolvers import Resolvers

log = logging.getLogger(__name__)

HEADER, PORT = 12, 53
SECONDS = 2.0
"""Timeout for each resolver; there are three at most."""
MOST = 128
"""Concurrent queries; further ones are not forwarded."""
TRY_NEXT = (Rcode.FORMERR, Rcode.SERVFAIL, Rcode.NOTIMP, Rcode.REFUSED)
"""After such a response code the next resolver is queried, as a stub resolver does."""


@dataclass(slots=True)
class Forwarder:
    """Forwards queries to upstream resolvers."""

    policy: Policy
    resolvers: Resolvers = field(default_factory=Resolvers)
    seconds: float = SECONDS
    _busy: int = 0
    _failure: str = ""
    """The last logged failure; a repeated one is not logged again: a laptop may be offline for hours."""

    def takes(self, request: Message, zones: Collection[dns.name.Name]) -> bool:
        return self.policy.lets_out(request, zones)

    async def ask(self, wire: bytes, *, tcp: bool) -> bytes | None:
        """The reply to the query in `wire`; None if no resolver replies."""
        if self._busy >= MOST:
            self._log_failure(f"{MOST} queries are in flight already")
            return None
        self._busy += 1
        try:
            return await self._ask_each(wire, tcp=tcp)
        finally:
            self._busy -= 1

    async def _ask_each(self, wire: bytes, *, tcp: bool) -> bytes | None:
        error_reply: bytes | None = None
        failed = []
        for server in self.resolvers.current():
            sent = secrets.token_bytes(2) + wire[2:]
            try:
                async with asyncio.timeout(self.seconds):
                    reply = await (_by_tcp if tcp else _by_udp)(server, sent)
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as why:
                failed.append(f"{server}: {str(why) or 'no answer in time'}")
                continue
            if reply[3] & 0x0F not in TRY_NEXT:
                self._log_failure("")
                return wire[:2] + reply[2:]
            error_reply = error_reply or wire[:2] + reply[2:]
        if error_reply is None:
            self._log_failure("; ".join(failed))
        return error_reply

    def _log_failure(self, failure: str) -> None:
        if failure != self._failure:
            self._failure = failure
            log.warning("names of the outside: %s", failure or "answered again")


def answers(reply: bytes, sent: bytes) -> bool:
    """Whether `reply` answers `sent`: same id, same question. An error reply may omit the question."""
    if len(reply) < HEADER or reply[:2] != sent[:2] or not reply[2] & 0x80:
        return False
    if reply[4:6] == b"\0\0":
        return reply[3] & 0x0F in TRY_NEXT
    end = question_end(sent)
    return reply[4:6] == b"\0\1" and reply[HEADER:end].lower() == sent[HEADER:end].lower()


def question_end(wire: bytes) -> int:
    """The offset after the first question: labels, an empty label, type and class."""
    at = HEADER
    while wire[at]:
        at += 1 + wire[at]
    return at + 5


async def _by_udp(server: str, sent: bytes) -> bytes:
    loop = asyncio.get_running_loop()
    exchange = _Exchange(sent, loop.create_future())
    transport, _ = await loop.create_datagram_endpoint(lambda: exchange, remote_addr=(server, PORT))
    try:
        transport.sendto(sent)
        return await exchange.reply
    finally:
        transport.close()


async def _by_tcp(server: str, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(server, PORT)
    try:
        writer.write(len(sent).to_bytes(2, "big") + sent)
        await writer.drain()
        reply = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
    finally:
        writer.close()
    if not answers(reply, sent):
        raise OSError("its reply does not match the query")
    return reply


class _Exchange(asyncio.DatagramProtocol):
    """One query over UDP; datagrams that do not answer it are ignored."""

    def __init__(self, sent: bytes, reply: asyncio.Future[bytes]) -> None:
        self._sent, self.reply = sent, reply

    def datagram_received(self, data: bytes, addr: object) -> None:  # noqa: ARG002
        if not self.reply.done() and answers(data, self._sent):
            self.reply.set_result(data)

    def error_received(self, exc: Exception) -> None:
        if not self.reply.done():
            self.reply.set_exception(exc)
