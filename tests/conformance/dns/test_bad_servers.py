"""Servers that are silent, broken, lying or not the right ones: every call ends in time, with the right error."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import dns.tsig
import pytest

from conformance.dns.conftest import PATIENT
from conformance.dns.scripted import scripted
from fakes.name_servers import LOOPBACK, ZONE, an_address, create, free_port
from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.providers.dns import BadRecord, NotAllowed, Stale
from protokube.providers.dns.keys import new_key
from protokube.providers.dns.rfc2136 import READ_SECONDS, Rfc2136Dns

KEY = new_key("protokube")
TSIG = dns.tsig.Key(KEY.name, KEY.secret, dns.tsig.HMAC_SHA256)
NAME = f"a.{ZONE}"
HASTY = 0.3
Call = Callable[[Rfc2136Dns], object]

READ: Call = lambda zone: zone.read([NAME])  # noqa: E731
APPLY: Call = lambda zone: zone.apply(create(an_address("a")))  # noqa: E731
LIST: Call = lambda zone: zone.list_records()  # noqa: E731
CALLS = pytest.mark.parametrize("call", [READ, APPLY, LIST], ids=["read", "apply", "list"])


def provider(port: int, seconds: float = HASTY) -> Rfc2136Dns:
    return Rfc2136Dns(ZONE, LOOPBACK, KEY, port=port, read_seconds=seconds)


def said(code: str, *, sign: bool = True, authoritative: bool = True) -> Callable[[bytes], bytes]:
    """A server that answers everything with this code."""

    def reply(wire: bytes) -> bytes:
        request = dns.message.from_wire(wire, keyring=TSIG if sign else False)
        if not sign:
            request.tsig = None
        response = dns.message.make_response(request)
        response.set_rcode(dns.rcode.Rcode[code])
        if authoritative:
            response.flags |= dns.flags.AA
        return response.to_wire()

    return reply


def silent(_: bytes) -> None:
    return None


def caught(call: Call, port: int, seconds: float = HASTY) -> ProtokubeError:
    with pytest.raises(ProtokubeError) as error:
        call(provider(port, seconds))
    assert f"{LOOPBACK} port {port}" in str(error.value)
    return error.value


@CALLS
def test_where_nobody_listens_it_is_tried_later(call: Call) -> None:
    assert isinstance(caught(call, free_port()), TryLater)


@CALLS
def test_a_silent_server_holds_nobody_up(call: Call) -> None:
    with scripted(silent) as server:
        began = time.monotonic()

        assert isinstance(caught(call, server.port), TryLater)

        assert time.monotonic() - began < 20


def test_a_read_takes_two_seconds_at_most_unless_told_otherwise() -> None:
    with scripted(silent) as server:
        began = time.monotonic()
        with pytest.raises(TryLater):
            READ(provider(server.port, READ_SECONDS))

        assert 1.5 < time.monotonic() - began < 20


@CALLS
def test_a_server_that_drips_holds_nobody_up(call: Call) -> None:
    with scripted(silent, said("NOERROR"), drip=True) as server:
        began = time.monotonic()

        assert isinstance(caught(call, server.port), TryLater)

        assert time.monotonic() - began < 20


def test_where_only_tcp_passes_reading_works_and_udp_is_not_waited_for_again() -> None:
    with scripted(silent, said("NOERROR", sign=False)) as server:
        zone = provider(server.port, PATIENT)

        assert zone.read([NAME, f"b.{ZONE}"]) == ()

        assert server.asked == ["udp"] + ["tcp"] * 6


def test_an_answer_that_was_cut_is_asked_for_again_by_tcp() -> None:
    def cut(wire: bytes) -> bytes:
        response = dns.message.make_response(dns.message.from_wire(wire))
        response.flags |= dns.flags.TC | dns.flags.AA
        return response.to_wire()

    def whole(wire: bytes) -> bytes:
        request = dns.message.from_wire(wire)
        response = dns.message.make_response(request)
        response.flags |= dns.flags.AA
        if request.question[0].rdtype == 1 and str(request.question[0].name) == f"{NAME}.":
            response.answer = [dns.rrset.from_text(f"{NAME}.", 5, "IN", "A", "10.0.0.1")]
        return response.to_wire()

    with scripted(cut, whole) as server:
        assert provider(server.port, PATIENT).read([NAME]) == (an_address("a"),)


def test_a_resolver_instead_of_the_authority_is_refused() -> None:
    with scripted(said("NOERROR", sign=False, authoritative=False)) as server:
        error = caught(READ, server.port, PATIENT)

    assert isinstance(error, Refused)
    assert "not of a resolver" in error.hint


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("REFUSED", NotAllowed),
        ("NOTAUTH", NotAllowed),
        ("NOTIMP", Refused),
        ("FORMERR", BadRecord),
        ("NOTZONE", BadRecord),
        ("SERVFAIL", TryLater),
        ("NXRRSET", Stale),
        ("YXRRSET", Stale),
        ("NXDOMAIN", Stale),
        ("YXDOMAIN", Stale),
    ],
)
def test_what_each_code_means_for_a_change(code: str, kind: type[ProtokubeError]) -> None:
    with scripted(said("NOERROR", sign=False), said(code)) as server, pytest.raises(kind) as error:
        APPLY(provider(server.port, PATIENT))

    assert type(error.value) is kind


@pytest.mark.parametrize(("code", "kind"), [("REFUSED", Refused), ("SERVFAIL", TryLater), ("FORMERR", TryLater)])
def test_what_each_code_means_for_a_question(code: str, kind: type[ProtokubeError]) -> None:
    with scripted(said(code, sign=False)) as server:
        assert type(caught(READ, server.port, PATIENT)) is kind


def test_that_there_is_no_such_name_is_an_answer() -> None:
    with scripted(said("NXDOMAIN", sign=False)) as server:
        assert provider(server.port, PATIENT).read([NAME]) == ()


def test_a_refusal_need_not_be_signed() -> None:
    with scripted(silent, said("REFUSED", sign=False)) as server:
        error = caught(APPLY, server.port, PATIENT)

    assert type(error) is NotAllowed
    assert "update-policy" in error.hint


def test_a_success_that_is_not_signed_is_not_believed() -> None:
    with scripted(silent, said("NOERROR", sign=False)) as server:
        assert isinstance(caught(APPLY, server.port, PATIENT), TryLater)


def test_a_success_signed_by_somebody_else_is_not_believed() -> None:
    def forged(wire: bytes) -> bytes:
        request = dns.message.from_wire(wire, keyring=False)
        response = dns.message.make_response(request)
        response.use_tsig(dns.tsig.Key(KEY.name, new_key("x").secret, dns.tsig.HMAC_SHA256))
        response.request_mac = request.mac or b""
        return response.to_wire()

    with scripted(silent, forged) as server:
        assert type(caught(APPLY, server.port, PATIENT)) is Refused


def test_an_answer_to_something_else_is_not_taken() -> None:
    def another(wire: bytes) -> bytes:
        reply = said("NOERROR")(wire)
        return bytes([reply[0] ^ 1]) + reply[1:]

    with scripted(silent, another) as server:
        assert isinstance(caught(APPLY, server.port, PATIENT), TryLater)


def test_clocks_that_differ_are_named() -> None:
    def late(wire: bytes) -> bytes:
        request = dns.message.from_wire(wire, keyring=False)
        response = dns.message.make_response(request)
        response.set_rcode(dns.rcode.NOTAUTH)
        response.use_tsig(TSIG, tsig_error=dns.rcode.BADTIME, other_data=bytes(6))
        response.request_mac = request.mac or b""
        return response.to_wire()

    with scripted(silent, late) as server:
        error = caught(APPLY, server.port, PATIENT)

    assert isinstance(error, TryLater)
    assert "NTP" in error.hint


@CALLS
@pytest.mark.parametrize("reply", [b"", b"\x00", b"garbage" * 5, bytes(65535)], ids=["end", "short", "text", "zeros"])
def test_garbage_is_tried_later(call: Call, reply: bytes) -> None:
    with scripted(lambda wire: wire[:2] + reply[2:1000], lambda wire: wire[:2] + reply[2:] if reply else b"") as server:
        assert isinstance(caught(call, server.port), TryLater)


def test_a_server_is_given_by_its_address() -> None:
    with pytest.raises(Refused) as error:
        Rfc2136Dns(ZONE, "ns.example.com", KEY)

    assert "ns.example.com" in str(error.value)


def test_nothing_of_dnspython_is_loaded_before_somebody_talks() -> None:
    program = "import sys, protokube.providers.dns.rfc2136; raise SystemExit('dns' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
