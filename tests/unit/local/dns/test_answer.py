"""What the server answers, message by message, without a socket."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import dns.edns
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdatatype
import dns.rrset
import dns.tsig
import dns.update
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from fakes.name_servers import ZONE, Kept
from protokube.local.dns.nameserver import MOST_CACHED, DnsServer
from protokube.providers.dns.keys import TsigKey, new_key
from protokube.records import Record

KEY = new_key("protokube")
MANY = tuple(f"10.1.{number // 250}.{number % 250}" for number in range(600))


def kept(*records: Record) -> Kept:
    return Kept({record.key: record for record in records})


def a_server() -> DnsServer:
    return DnsServer(
        [ZONE],
        [KEY],
        kept(
            Record(name=f"a.internal.{ZONE}", type="A", values=("10.0.0.1", "10.0.0.2"), ttl=5),
            Record(name=f"a.internal.{ZONE}", type="TXT", values=('"x"',), ttl=5),
            Record(name=f"six.{ZONE}", type="AAAA", values=("2001:db8::1",), ttl=5),
            Record(name=f"_etcd._tcp.{ZONE}", type="SRV", values=(f"0 0 2380 a.internal.{ZONE}.",), ttl=5),
            Record(name=f"many.{ZONE}", type="A", values=MANY, ttl=5),
            Record(name=f"*.apps.{ZONE}", type="A", values=("10.0.0.9",), ttl=5),
            Record(name=f"short.{ZONE}", type="CNAME", values=(f"longer.{ZONE}.",), ttl=5),
            Record(name=f"longer.{ZONE}", type="CNAME", values=(f"a.internal.{ZONE}.",), ttl=5),
            Record(name=f"outside.{ZONE}", type="CNAME", values=("x.test.",), ttl=5),
            Record(name=f"nowhere.{ZONE}", type="CNAME", values=(f"no-such.{ZONE}.",), ttl=5),
            Record(name=f"round.{ZONE}", type="CNAME", values=(f"round.{ZONE}.",), ttl=5),
        ),
        address="10.77.0.1",
    )


SERVER = a_server()


def received(wire: bytes, *, tcp: bool = False, server: DnsServer = SERVER) -> list[bytes]:
    replies = server.receive(wire, tcp=tcp)
    assert not isinstance(replies, partial)
    return list(replies)


def reply_to(message: dns.message.Message, *, tcp: bool = False, server: DnsServer = SERVER) -> dns.message.Message:
    (wire,) = received(message.to_wire(), tcp=tcp, server=server)
    reply = dns.message.from_wire(wire, keyring=False)
    assert reply.id == message.id
    assert reply.flags & dns.flags.QR
    return reply


def ask(name: str, kind: str = "A", *, tcp: bool = False, server: DnsServer = SERVER) -> dns.message.Message:
    return reply_to(dns.message.make_query(name, kind), tcp=tcp, server=server)


def answers(reply: dns.message.Message) -> list[str]:
    return sorted(line for rrset in reply.answer for line in rrset.to_text().splitlines())


def code_and_authority(reply: dns.message.Message) -> tuple[str, bool]:
    return reply.rcode().name, bool(reply.flags & dns.flags.AA)


@pytest.mark.parametrize(
    ("name", "kind", "lines"),
    [
        (f"a.internal.{ZONE}", "A", [f"a.internal.{ZONE}. 5 IN A 10.0.0.1", f"a.internal.{ZONE}. 5 IN A 10.0.0.2"]),
        (f"a.internal.{ZONE}", "TXT", [f'a.internal.{ZONE}. 5 IN TXT "x"']),
        (f"six.{ZONE}", "AAAA", [f"six.{ZONE}. 5 IN AAAA 2001:db8::1"]),
        (f"_etcd._tcp.{ZONE}", "SRV", [f"_etcd._tcp.{ZONE}. 5 IN SRV 0 0 2380 a.internal.{ZONE}."]),
        (ZONE, "NS", [f"{ZONE}. 60 IN NS ns.{ZONE}."]),
        (ZONE, "SOA", [f"{ZONE}. 5 IN SOA ns.{ZONE}. hostmaster.{ZONE}. 1 3600 600 86400 5"]),
        (f"ns.{ZONE}", "A", [f"ns.{ZONE}. 60 IN A 10.77.0.1"]),
        (f"x.apps.{ZONE}", "A", [f"x.apps.{ZONE}. 5 IN A 10.0.0.9"]),
        (
            f"a.internal.{ZONE}",
            "ANY",
            [
                f"a.internal.{ZONE}. 5 IN A 10.0.0.1",
                f"a.internal.{ZONE}. 5 IN A 10.0.0.2",
                f'a.internal.{ZONE}. 5 IN TXT "x"',
            ],
        ),
    ],
)
def test_every_type_is_answered(name: str, kind: str, lines: list[str]) -> None:
    reply = ask(name, kind)

    assert code_and_authority(reply) == ("NOERROR", True)
    assert answers(reply) == lines


def test_an_alias_is_followed_to_its_end() -> None:
    reply = ask(f"short.{ZONE}", "TXT")

    assert code_and_authority(reply) == ("NOERROR", True)
    assert [rrset.to_text() for rrset in reply.answer] == [
        f"short.{ZONE}. 5 IN CNAME longer.{ZONE}.",
        f"longer.{ZONE}. 5 IN CNAME a.internal.{ZONE}.",
        f'a.internal.{ZONE}. 5 IN TXT "x"',
    ]


@pytest.mark.parametrize("kind", ["CNAME", "ANY"])
def test_who_asks_for_the_alias_itself_gets_only_that(kind: str) -> None:
    assert answers(ask(f"short.{ZONE}", kind)) == [f"short.{ZONE}. 5 IN CNAME longer.{ZONE}."]


@pytest.mark.parametrize(
    ("name", "kind", "code", "has_authority"),
    [
        ("outside", "A", "NOERROR", False),
        ("nowhere", "A", "NXDOMAIN", True),
        ("short", "AAAA", "NOERROR", True),
    ],
)
def test_an_alias_that_leads_to_nothing_says_how_its_end_is(
    name: str, kind: str, code: str, has_authority: bool
) -> None:
    reply = ask(f"{name}.{ZONE}", kind)

    assert code_and_authority(reply) == (code, True)
    assert {rrset.rdtype for rrset in reply.answer} == {dns.rdatatype.CNAME}
    assert bool(reply.authority) is has_authority


def test_aliases_in_a_circle_come_to_an_end() -> None:
    assert code_and_authority(ask(f"round.{ZONE}")) == ("NOERROR", True)


def test_the_name_comes_back_as_it_was_asked() -> None:
    reply = ask(f"A.InTernal.{ZONE}")

    assert str(reply.question[0].name) == f"A.InTernal.{ZONE}."
    assert str(reply.answer[0].name) == f"A.InTernal.{ZONE}."
    assert len(reply.answer[0]) == 2


@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [
        (f"a.internal.{ZONE}", "AAAA", "NOERROR"),
        (f"a.internal.{ZONE}", "MX", "NOERROR"),
        (f"a.internal.{ZONE}", "TYPE65", "NOERROR"),
        (f"internal.{ZONE}", "A", "NOERROR"),
        (f"_tcp.{ZONE}", "SRV", "NOERROR"),
        (f"x.apps.{ZONE}", "AAAA", "NOERROR"),
        (f"z.{ZONE}", "A", "NXDOMAIN"),
        (f"b.internal.{ZONE}", "A", "NXDOMAIN"),
        (f"x.a.internal.{ZONE}", "ANY", "NXDOMAIN"),
    ],
)
def test_what_is_not_there_is_told_with_the_soa_and_soon_forgotten(name: str, kind: str, code: str) -> None:
    reply = ask(name, kind)

    assert code_and_authority(reply) == (code, True)
    assert reply.answer == []
    (soa,) = reply.authority
    assert soa.rdtype == dns.rdatatype.SOA
    assert soa.ttl <= 5
    assert soa[0].minimum <= 5


@pytest.mark.parametrize("name", ["example.com", "com", ".", f"a.{ZONE}.org", "a.other.test", f"x{ZONE}"])
def test_other_peoples_names_are_refused(name: str) -> None:
    reply = ask(name)

    assert code_and_authority(reply) == ("REFUSED", False)
    assert reply.answer == reply.authority == []


def test_other_classes_are_refused() -> None:
    assert code_and_authority(reply_to(dns.message.make_query("version.bind", "TXT", "CH")))[0] == "REFUSED"
    assert code_and_authority(reply_to(dns.message.make_query(ZONE, "SOA", "CH")))[0] == "REFUSED"


@pytest.mark.parametrize("kind", ["OPT", "TSIG", "MAILB", "TKEY"])
def test_what_is_no_type_of_records_is_refused(kind: str) -> None:
    assert code_and_authority(ask(ZONE, kind))[0] == "REFUSED"


def test_an_answer_that_is_too_long_for_udp_is_cut_and_says_so() -> None:
    reply = ask(f"many.{ZONE}")

    assert reply.flags & dns.flags.TC
    assert reply.answer == []


def test_by_tcp_it_comes_whole() -> None:
    reply = ask(f"many.{ZONE}", tcp=True)

    assert not reply.flags & dns.flags.TC
    assert len(reply.answer[0]) == len(MANY)


@pytest.mark.parametrize(("payload", "largest"), [(None, 512), (100, 512), (512, 512), (1232, 1232), (65535, 1232)])
def test_no_udp_answer_is_longer_than_what_the_client_takes_and_what_is_safe(payload: int | None, largest: int) -> None:
    server = DnsServer(
        [ZONE], [], kept(Record(name=f"t.{ZONE}", type="A", values=tuple(MANY[:40]), ttl=5)), address=None
    )
    query = dns.message.make_query(f"t.{ZONE}", "A", payload=payload)
    (wire,) = received(query.to_wire(), server=server)

    assert len(wire) <= largest
    assert bool(dns.message.from_wire(wire).flags & dns.flags.TC) == (largest == 512)


def test_edns_is_answered_with_edns_and_options_are_passed_over() -> None:
    query = dns.message.make_query(
        f"six.{ZONE}", "AAAA", options=[dns.edns.GenericOption(dns.edns.OptionType.COOKIE, b"12345678")]
    )
    reply = reply_to(query)

    assert reply.edns == 0
    assert answers(reply)
    assert reply_to(dns.message.make_query(f"six.{ZONE}", "AAAA")).edns == -1


def test_a_later_edns_is_told_that_we_speak_the_first() -> None:
    query = dns.message.make_query(f"six.{ZONE}", "AAAA", use_edns=1)

    assert reply_to(query).rcode() == dns.rcode.BADVERS


@pytest.mark.parametrize("opcode", [dns.opcode.IQUERY, dns.opcode.STATUS, dns.opcode.NOTIFY, 6, 15])
def test_other_operations_are_not_implemented(opcode: int) -> None:
    query = dns.message.make_query(ZONE, "SOA")
    query.set_opcode(dns.opcode.Opcode(opcode) if opcode < 6 else dns.opcode.QUERY)
    wire = bytearray(query.to_wire())
    wire[2] = (wire[2] & 0x87) | (opcode << 3)

    (reply,) = received(bytes(wire))
    assert reply[3] & 0x0F == dns.rcode.NOTIMP


def test_a_query_needs_one_question() -> None:
    none, two = dns.message.Message(id=7), dns.message.make_query(ZONE, "SOA")
    two.question.append(dns.message.make_query(ZONE, "NS").question[0])

    assert reply_to(none).rcode() == dns.rcode.FORMERR
    assert reply_to(two).rcode() == dns.rcode.FORMERR


def test_an_answer_is_never_answered() -> None:
    reply = ask(f"six.{ZONE}", "AAAA")

    assert received(reply.to_wire()) == []


@pytest.mark.parametrize("wire", [b"", b"\x00", bytes(11), bytes([0, 1, 0x80]) + bytes(9)])
def test_what_is_no_request_at_all_is_not_answered(wire: bytes) -> None:
    assert received(wire) == []


def test_what_cannot_be_read_gets_its_number_back_and_a_code() -> None:
    query = dns.message.make_query(f"six.{ZONE}", "AAAA")
    for cut in (query.to_wire()[:-1], query.to_wire() + b"x"):
        (reply,) = received(cut)

        assert reply[:2] == query.id.to_bytes(2, "big")
        assert reply[3] == dns.rcode.FORMERR
        assert reply[2] & 0x80
        assert reply[4:] == bytes(8)


def signed(message: dns.message.Message, key: TsigKey = KEY, algorithm: dns.name.Name = dns.tsig.HMAC_SHA256) -> bytes:
    message.use_tsig(dns.tsig.Key(key.name, key.secret, algorithm))
    return message.to_wire()


def test_a_signed_query_gets_a_signed_answer() -> None:
    query = dns.message.make_query(f"six.{ZONE}", "AAAA")
    (wire,) = received(signed(query))

    reply = dns.message.from_wire(
        wire, keyring=dns.tsig.Key(KEY.name, KEY.secret, dns.tsig.HMAC_SHA256), request_mac=query.mac or b""
    )
    assert reply.had_tsig
    assert answers(reply)


@pytest.mark.parametrize(
    ("key", "algorithm", "error"),
    [
        (new_key("protokube"), dns.tsig.HMAC_SHA256, "BADSIG"),
        (new_key("nobody"), dns.tsig.HMAC_SHA256, "BADKEY"),
        (KEY, dns.tsig.HMAC_SHA512, "BADKEY"),
        (KEY, dns.tsig.HMAC_MD5, "BADKEY"),
    ],
)
def test_a_wrong_signature_is_refused_without_one(key: TsigKey, algorithm: dns.name.Name, error: str) -> None:
    (wire,) = received(signed(dns.message.make_query(ZONE, "SOA"), key, algorithm))
    reply = dns.message.from_wire(wire, keyring=False)

    assert reply.rcode() == dns.rcode.NOTAUTH
    assert reply.answer == []
    assert reply.tsig_error == dns.rcode.Rcode[error]
    assert reply.mac == b""


def test_a_signature_of_an_hour_ago_is_refused_with_the_time_of_the_server() -> None:
    query = dns.message.make_query(ZONE, "SOA")
    key = dns.tsig.Key(KEY.name, KEY.secret, dns.tsig.HMAC_SHA256)
    query.use_tsig(key)
    unsigned = query.to_wire()[: len(dns.message.make_query(ZONE, "SOA").to_wire())]
    assert query.tsig is not None
    rdata, _ = dns.tsig.sign(  # type: ignore[no-untyped-call]
        unsigned[:10] + b"\0\0" + unsigned[12:], key, query.tsig[0], int(time.time()) - 3600, b""
    )
    query.tsig = dns.rrset.from_rdata(query.tsig.name, 0, rdata)
    query.want_tsig_sign = False

    (wire,) = received(query.to_wire())
    reply = dns.message.from_wire(wire, keyring=False)

    assert reply.rcode() == dns.rcode.NOTAUTH
    assert reply.tsig_error == dns.rcode.BADTIME
    assert reply.mac


@pytest.mark.parametrize("kind", ["AXFR", "IXFR"])
def test_nobody_gets_the_zone_without_a_key_or_by_udp(kind: str) -> None:
    assert ask(ZONE, kind, tcp=True).rcode() == dns.rcode.REFUSED
    (wire,) = received(signed(dns.message.make_query(ZONE, kind)))
    assert dns.message.from_wire(wire, keyring=False).rcode() == dns.rcode.REFUSED


@pytest.mark.parametrize("name", [f"a.internal.{ZONE}", "example.com"])
def test_only_a_whole_zone_can_be_transferred(name: str) -> None:
    (wire,) = received(signed(dns.message.make_query(name, "AXFR")), tcp=True)

    assert dns.message.from_wire(wire, keyring=False).rcode() == dns.rcode.NOTAUTH


def test_a_transfer_begins_and_ends_with_the_soa_and_is_cut_into_messages() -> None:
    records = [Record(name=f"n{n}.{ZONE}", type="TXT", values=(f'"{"x" * 250}"',), ttl=5) for n in range(300)]
    server = DnsServer([ZONE], [KEY], kept(*records))
    wires = received(signed(dns.message.make_query(ZONE, "AXFR")), tcp=True, server=server)

    kinds = [rrset.rdtype for wire in wires for rrset in dns.message.from_wire(wire, keyring=False, xfr=True).answer]
    assert kinds[0] == kinds[-1] == dns.rdatatype.SOA
    assert kinds.count(dns.rdatatype.TXT) == 300
    assert len(wires) > 3
    assert max(map(len, wires)) < 20_000


def test_an_update_is_handed_on() -> None:
    update = dns.update.UpdateMessage(ZONE)
    update.add(f"new.{ZONE}.", 5, "A", "10.0.0.1")

    assert isinstance(SERVER.receive(signed(update), tcp=True), partial)
    assert isinstance(SERVER.receive(update.to_wire(), tcp=False), partial)


def test_a_query_seen_before_is_answered_the_same_with_its_own_number() -> None:
    query = dns.message.make_query(f"A.internal.{ZONE}", "A")
    first = reply_to(query)
    query.id = (query.id + 1) % 65536

    again = reply_to(query)

    assert answers(again) == answers(first)


def test_what_was_remembered_for_tcp_is_not_used_for_udp() -> None:
    query = dns.message.make_query(f"many.{ZONE}", "A")

    assert not reply_to(query, tcp=True).flags & dns.flags.TC
    assert reply_to(query, tcp=False).flags & dns.flags.TC


def test_memory_does_not_grow_with_the_questions() -> None:
    server = DnsServer([ZONE], [KEY], Kept())
    for number in range(10 * MOST_CACHED):
        server._cache_reply(False, b"%08d" % number, b"reply")

    assert 0 < len(server._cached) <= MOST_CACHED


GOOD = [
    dns.message.make_query(f"a.internal.{ZONE}", "A", use_edns=0, id=1).to_wire(),
    dns.message.make_query(ZONE, "AXFR", id=2).to_wire(),
    signed(dns.message.make_query(ZONE, "AXFR", id=3)),
]
_update = dns.update.UpdateMessage(ZONE, id=4)
_update.present(f"a.{ZONE}.", "A", "10.0.0.1")
_update.delete(f"a.{ZONE}.", "A", "10.0.0.1")
GOOD += [_update.to_wire(), signed(_update)]


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """A good message with some bytes changed, cut or doubled."""
    wire = bytearray(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(0, 6))):
        wire[draw(st.integers(0, len(wire) - 1))] = draw(st.integers(0, 255))
    return bytes(wire[: draw(st.integers(0, len(wire)))]) + draw(st.binary(max_size=8))


@examples(250)
@given(st.one_of(st.binary(max_size=64), broken(), st.binary(max_size=64).map(lambda tail: bytes(12) + tail)))
def test_no_packet_whatever_breaks_the_server_and_none_that_is_a_response_is_answered(wire: bytes) -> None:
    for tcp in (False, True):
        replies = SERVER.receive(wire, tcp=tcp)
        if isinstance(replies, partial):
            replies = (asyncio.run(replies()),)
        for reply in replies:
            assert not wire[2] & 0x80
            assert reply[:2] == wire[:2]
            assert reply[2] & 0x80
            assert tcp or len(reply) <= 1232 or wire[2] >> 3 == dns.opcode.UPDATE
