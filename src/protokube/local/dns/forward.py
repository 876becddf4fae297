"""Ask the name servers of the user's machine what is not the cluster's own, from the user's own network.

A question goes there as it came, under another number, and the answer comes back as it is: whatever two ends agree on
(EDNS, DNSSEC) is theirs. By UDP or TCP as it came: an answer that is cut short says so, and the host asks again by TCP.
Every question has a connection of its own, so that nobody can guess where its answer is awaited.
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
"""For each name server; there are three at the most."""
MOST = 128
"""Questions under way at the same time; more get no answer from outside."""
USELESS = (Rcode.FORMERR, Rcode.SERVFAIL, Rcode.NOTIMP, Rcode.REFUSED)
"""With such an answer the next server is asked, as a resolver does."""


@dataclass(slots=True)
class Forwarder:
    """Has questions answered by somebody else."""

    policy: Policy
    resolvers: Resolvers = field(default_factory=Resolvers)
    seconds: float = SECONDS
    _busy: int = 0
    _trouble: str = ""
    """What was last told: a laptop without a network would fill the log with the same line."""

    def takes(self, request: Message, zones: Collection[dns.name.Name]) -> bool:
        return self.policy.lets_out(request, zones)

    async def ask(self, wire: bytes, *, tcp: bool) -> bytes | None:
        """The answer to the question in `wire`; None if there is none."""
        if self._busy >= MOST:
            self._tell(f"{MOST} questions are under way already")
            return None
        self._busy += 1
        try:
            return await self._ask_each(wire, tcp=tcp)
        finally:
            self._busy -= 1

    async def _ask_each(self, wire: bytes, *, tcp: bool) -> bytes | None:
        poor: bytes | None = None
        failed = []
        for server in self.resolvers.current():
            sent = secrets.token_bytes(2) + wire[2:]
            try:
                async with asyncio.timeout(self.seconds):
                    reply = await (_by_tcp if tcp else _by_udp)(server, sent)
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as why:
                failed.append(f"{server}: {str(why) or 'no answer in time'}")
                continue
            if reply[3] & 0x0F not in USELESS:
                self._tell("")
                return wire[:2] + reply[2:]
            poor = poor or wire[:2] + reply[2:]
        if poor is None:
            self._tell("; ".join(failed))
        return poor

    def _tell(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            log.warning("names of the outside: %s", trouble or "answered again")


def answers(reply: bytes, sent: bytes) -> bool:
    """Whether this is the answer to that: same number, same question. A failure may leave out the question."""
    if len(reply) < HEADER or reply[:2] != sent[:2] or not reply[2] & 0x80:
        return False
    if reply[4:6] == b"\0\0":
        return reply[3] & 0x0F in USELESS
    end = question_end(sent)
    return reply[4:6] == b"\0\1" and reply[HEADER:end].lower() == sent[HEADER:end].lower()


def question_end(wire: bytes) -> int:
    """Where the first question of a message ends: labels, an empty one, type and class."""
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
        raise OSError("it answered something else")
    return reply


class _Exchange(asyncio.DatagramProtocol):
    """One question by UDP; what is no answer to it is passed over."""

    def __init__(self, sent: bytes, reply: asyncio.Future[bytes]) -> None:
        self._sent, self.reply = sent, reply

    def datagram_received(self, data: bytes, addr: object) -> None:  # noqa: ARG002
        if not self.reply.done() and answers(data, self._sent):
            self.reply.set_result(data)

    def error_received(self, exc: Exception) -> None:
        if not self.reply.done():
            self.reply.set_exception(exc)
