"""Questions for others: asked of the name servers in resolv.conf, each within its time."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import dns.message
import dns.rcode
import dns.rrset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.event_loops import end_tasks, settle
from fakes.name_servers import ZONE, Kept
from protokube.local.dns import forward
from protokube.local.dns.forward import Forwarder, answers, question_end
from protokube.local.dns.nameserver import DnsServer
from protokube.local.dns.policy import Policy
from protokube.local.dns.resolvers import Resolvers

Answering = Callable[[bytes], bytes | None]
QUERY = dns.message.make_query("web.example", "A")


def answered(wire: bytes, address: str = "198.51.100.2") -> bytes:
    query = dns.message.from_wire(wire)
    reply = dns.message.make_response(query)
    reply.answer = [dns.rrset.from_text(query.question[0].name, 60, "IN", "A", address)]
    return reply.to_wire()


def failing(wire: bytes) -> bytes:
    reply = dns.message.make_response(dns.message.from_wire(wire))
    reply.set_rcode(dns.rcode.SERVFAIL)
    return reply.to_wire()


class Server(asyncio.DatagramProtocol):
    def __init__(self, answering: Answering) -> None:
        self.answering = answering
        self.asked: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.asked.append(data)
        if (reply := self.answering(data)) is not None:
            self.transport.sendto(reply, addr)  # type: ignore[attr-defined]


def itself(server: Server) -> Server:
    return server


@asynccontextmanager
async def servers(tmp_path: Path, *answering: Answering) -> AsyncIterator[tuple[Forwarder, list[Server]]]:
    """On addresses of this machine's loopback that nobody else uses, at the port of name servers."""
    loop = asyncio.get_running_loop()
    places = [f"127.{secrets.randbelow(200) + 20}.{secrets.randbelow(250)}.{n + 1}" for n in range(len(answering))]
    found = [Server(each) for each in answering]
    transports = []
    for place, server in zip(places, found, strict=True):
        transports.append((await loop.create_datagram_endpoint(partial(itself, server), local_addr=(place, 53)))[0])
    (tmp_path / "resolv.conf").write_text("".join(f"nameserver {place}\n" for place in places))
    try:
        yield Forwarder(Policy(), Resolvers(tmp_path / "resolv.conf"), seconds=0.3), found
    finally:
        for transport in transports:
            transport.close()


def run(tmp_path: Path, *answering: Answering) -> tuple[bytes | None, list[Server]]:
    async def story() -> tuple[bytes | None, list[Server]]:
        async with servers(tmp_path, *answering) as (forwarder, found):
            return await forwarder.ask(QUERY.to_wire(), tcp=False), found

    return asyncio.run(story())


def address(reply: bytes | None) -> str:
    assert reply is not None
    assert reply[:2] == QUERY.to_wire()[:2]
    return str(dns.message.from_wire(reply).answer[0][0])


def test_the_first_server_that_answers_is_believed_and_asked_under_a_number_of_our_own(tmp_path: Path) -> None:
    reply, (first, second) = run(tmp_path, answered, answered)
    assert address(reply) == "198.51.100.2"
    assert [wire[2:] for wire in first.asked] == [QUERY.to_wire()[2:]]
    assert second.asked == []


@pytest.mark.parametrize("poor", [lambda _: None, failing])
def test_the_next_server_is_asked_where_one_is_silent_or_fails(tmp_path: Path, poor: Answering) -> None:
    reply, (first, _) = run(tmp_path, poor, answered)
    assert address(reply) == "198.51.100.2"
    assert len(first.asked) == 1


def test_what_all_servers_fail_at_is_told_as_they_told_it(tmp_path: Path) -> None:
    reply, _ = run(tmp_path, failing, lambda _: None)
    assert reply is not None
    assert dns.message.from_wire(reply).rcode() == dns.rcode.SERVFAIL


def test_answers_to_something_else_are_passed_over(tmp_path: Path) -> None:
    def lying(wire: bytes) -> bytes:
        return bytes([wire[0] ^ 1]) + answered(wire, "203.0.113.1")[1:]

    reply, _ = run(tmp_path, lying, answered)
    assert address(reply) == "198.51.100.2"


def test_silence_of_all_is_logged_once_and_so_is_their_return(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with servers(tmp_path, lambda _: None) as (forwarder, (server,)):
            assert await forwarder.ask(QUERY.to_wire(), tcp=False) is None
            assert await forwarder.ask(QUERY.to_wire(), tcp=False) is None
            server.answering = answered
            assert await forwarder.ask(QUERY.to_wire(), tcp=False)

    with caplog.at_level(logging.WARNING, "protokube.local.dns.forward"):
        asyncio.run(story())
    silent, again = (record.getMessage() for record in caplog.records)
    assert "no answer in time" in silent
    assert again == "names of the outside: answered again"


def test_only_so_many_questions_are_under_way_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with servers(tmp_path, lambda _: None) as (forwarder, (server,)):
            forwarder.seconds = 60.0  # none gives up before the last one was sent
            asking = [asyncio.create_task(forwarder.ask(QUERY.to_wire(), tcp=False)) for _ in range(forward.MOST + 20)]
            async with asyncio.timeout(60):
                while len(server.asked) < forward.MOST:
                    await asyncio.sleep(0.01)
            await settle()
            assert [each.done() for each in asking] == [False] * forward.MOST + [True] * 20
            assert {each.result() for each in asking[forward.MOST :]} == {None}
            assert len(server.asked) == forward.MOST
            await end_tasks(cancel=True)

    asyncio.run(story())


def test_a_host_gets_servfail_where_nobody_answers_and_the_users_own_port_never_forwards(tmp_path: Path) -> None:
    async def story() -> None:
        server = DnsServer([ZONE], [], Kept({}), address="10.77.0.1")
        async with servers(tmp_path, lambda _: None) as (forwarder, (silent,)):
            server.forwarder = forwarder
            plain = server.receive(QUERY.to_wire(), tcp=False)
            assert isinstance(plain, tuple)
            assert dns.message.from_wire(plain[0]).rcode() == dns.rcode.REFUSED
            assert silent.asked == []
            work = server.receive(QUERY.to_wire(), tcp=False, forwards=True)
            assert not isinstance(work, tuple)
            assert callable(work)
            assert dns.message.from_wire(await work()).rcode() == dns.rcode.SERVFAIL
            assert len(silent.asked) == 1

    asyncio.run(story())


@given(st.binary(max_size=80))
def test_no_bytes_whatever_pass_for_the_answer_unless_they_name_the_question(data: bytes) -> None:
    sent = QUERY.to_wire()
    head = sent[:2] + b"\x81\x80"
    for reply in (data, head + data):
        if answers(reply, sent):
            asked = reply[12 : question_end(sent)].lower()
            assert reply[4:6] == b"\0\0" or asked == sent[12 : question_end(sent)].lower()
