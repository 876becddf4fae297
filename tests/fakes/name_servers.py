"""DNS servers on loopback for tests: the embedded one, BIND and Knot; and the tools to ask them."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import dns.exception
import dns.message
import dns.query
import dns.rcode
import dns.rdtypes.ANY.SOA
import dns.tsig
import dns.update
import dns.xfr
import dns.zone

from fakes.dns_thread import DnsThread
from host.debian import CACHE, download
from protokube.local.dns.nameserver import DnsServer
from protokube.providers.dns.keys import TsigKey, new_key
from protokube.records import Change, Key, Record
from protokube.records.names import make_record

ZONE = "dev.example.com"
LOOPBACK = "127.0.0.1"


def an_address(name: str, *addresses: str, ttl: int = 5) -> Record:
    values = addresses or ("10.0.0.1",)
    return make_record(f"{name}.{ZONE}", "AAAA" if ":" in values[0] else "A", values, ttl)


def a_text(name: str, *texts: str, ttl: int = 5) -> Record:
    return make_record(f"{name}.{ZONE}", "TXT", texts or ("hello",), ttl)


def an_alias(name: str, target: str = f"target.{ZONE}", ttl: int = 5) -> Record:
    return make_record(f"{name}.{ZONE}", "CNAME", [target], ttl)


def create(*records: Record) -> list[Change]:
    return [Change(before=None, after=record, why="test") for record in records]


def change(before: Record, after: Record) -> Change:
    return Change(before=before, after=after, why="test")


def delete(*records: Record) -> list[Change]:
    return [Change(before=record, after=None, why="test") for record in records]


@dataclass
class Kept:
    """What a server is to remember, in memory; breaks when told to."""

    records: dict[Key, Record] = field(default_factory=dict)
    saves: list[Sequence[Change]] = field(default_factory=list)
    fault: Exception | None = None
    gate: threading.Event | None = None
    held: threading.Event = field(default_factory=threading.Event)
    """Somebody is at the gate."""

    def load(self) -> Sequence[Record]:
        return list(self.records.values())

    def save(self, changes: Sequence[Change]) -> None:
        if self.gate is not None:
            self.held.set()
            self.gate.wait(60)
        if self.fault is not None:
            raise self.fault
        self.saves.append(changes)
        for each in changes:
            if each.after is None:
                del self.records[each.key]
            else:
                self.records[each.key] = each.after


def loopback_sockets(address: str = LOOPBACK) -> tuple[socket.socket, socket.socket]:
    """UDP and TCP at one free port."""
    for _ in range(50):
        tcp = socket.create_server((address, 0))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            udp.bind(tcp.getsockname())
        except OSError:
            tcp.close()
            udp.close()
            continue
        return udp, tcp
    raise AssertionError("no port is free for both UDP and TCP")


def free_port() -> int:
    udp, tcp = loopback_sockets()
    port: int = udp.getsockname()[1]
    udp.close()
    tcp.close()
    return port


@dataclass(frozen=True)
class Running:
    """A server that serves ZONE at a port of loopback."""

    port: int
    key: TsigKey
    kept: Kept = field(default_factory=Kept)

    def ask(self, message: dns.message.Message, *, tcp: bool = False) -> dns.message.Message:
        send: Callable[..., dns.message.Message] = dns.query.tcp if tcp else dns.query.udp
        return send(message, LOOPBACK, timeout=20, port=self.port)

    def update(self) -> dns.update.UpdateMessage:
        """An update of the zone, to be filled and asked with: somebody else's hand."""
        return dns.update.UpdateMessage(ZONE, keyring=self._key)

    def empty(self) -> None:
        """Delete every record but those the server needs for itself."""
        zone = dns.zone.Zone(ZONE, relativize=False)
        query, _ = dns.xfr.make_query(zone, serial=None, keyring=self._key)
        dns.query.inbound_xfr(LOOPBACK, zone, query, port=self.port, timeout=20)
        update = self.update()
        for name in zone:
            if not name.to_text().startswith("ns."):
                update.delete(name)
        assert self.ask(update, tcp=True).rcode() == dns.rcode.NOERROR

    @property
    def serial(self) -> int:
        """How far the zone has come: every change makes it greater."""
        soa = self.ask(dns.message.make_query(ZONE, "SOA")).answer[0][0]
        assert isinstance(soa, dns.rdtypes.ANY.SOA.SOA)
        return soa.serial

    @property
    def _key(self) -> dns.tsig.Key:
        return dns.tsig.Key(self.key.name, self.key.secret, dns.tsig.HMAC_SHA256)


@contextmanager
def embedded(*zones: str, kept: Kept | None = None, key: TsigKey | None = None) -> Iterator[Running]:
    kept, key = kept or Kept(), key or new_key("protokube")
    udp, tcp = loopback_sockets()
    port = udp.getsockname()[1]
    with DnsThread(DnsServer(zones or (ZONE,), [key], kept, address=LOOPBACK), (udp, tcp)):
        yield Running(port, key, kept)


ZONE_FILE = f"""\
$TTL 60
@ IN SOA ns.{ZONE}. hostmaster.{ZONE}. 1 3600 600 86400 5
@ IN NS ns.{ZONE}.
ns IN A 127.0.0.1
"""

NAMED = """\
options {{
    directory "{folder}";
    pid-file "{folder}/named.pid";
    session-keyfile "{folder}/session.key";
    managed-keys-directory "{folder}";
    listen-on port {port} {{ 127.0.0.1; }};
    listen-on-v6 {{ none; }};
    recursion no;
    dnssec-validation no;
    notify no;
    empty-zones-enable no;
}};
controls {{ }};
key "{key.name}" {{ algorithm hmac-sha256; secret "{key.secret}"; }};
key "stranger" {{ algorithm hmac-sha256; secret "c3RyYW5nZXI="; }};
zone "{zone}" {{
    type primary;
    file "{folder}/zone";
    allow-transfer {{ key "{key.name}"; }};
    {updates}
}};
"""

KNOT = """\
server:
    rundir: "{folder}"
    listen: [ 127.0.0.1@{port} ]
    udp-workers: 1
    tcp-workers: 2
    background-workers: 1
database:
    storage: "{folder}"
log:
  - target: stderr
    any: warning
key:
  - id: {key.name}
    algorithm: hmac-sha256
    secret: "{key.secret}"
  - id: stranger
    algorithm: hmac-sha256
    secret: "c3RyYW5nZXI="
acl:
  - id: writer
    key: {key.name}
    action: [ update, transfer ]
{updates}
zone:
  - domain: {zone}
    storage: "{folder}"
    file: zone
    acl: writer
    zonefile-sync: -1
    journal-content: none
    zonefile-load: whole
"""
BIND_ALL = 'allow-update {{ key "{key.name}"; }};'
BIND_BELOW = "update-policy {{ grant {key.name} subdomain {below} ANY; }};"
KNOT_BELOW = """\
    update-owner: name
    update-owner-match: sub-or-equal
    update-owner-name: [ {below}. ]"""
STRANGER = TsigKey(name="stranger", secret="c3RyYW5nZXI=")
"""A key that BIND and Knot know, and that may do nothing."""


@contextmanager
def bind(folder: Path, *, below: str = "") -> Iterator[Running]:
    """`below`: the only name below which the key may write."""
    named = debian_program("bind9", "usr/sbin/named")
    template = NAMED.replace("{updates}", BIND_BELOW if below else BIND_ALL).replace("{below}", below)
    with _server(folder, template, "named.conf", [named, "-g", "-n1", "-c", str(folder / "named.conf")]) as running:
        yield running


@contextmanager
def knot(folder: Path, *, below: str = "") -> Iterator[Running]:
    knotd = debian_program("knot", "usr/sbin/knotd")
    template = KNOT.replace("{updates}", KNOT_BELOW if below else "").replace("{below}", below)
    with _server(folder, template, "knot.conf", [knotd, "-c", str(folder / "knot.conf")]) as running:
        yield running


@contextmanager
def _server(folder: Path, template: str, name: str, command: Sequence[str]) -> Iterator[Running]:
    with ExitStack() as stack:
        log = stack.enter_context((folder / "log").open("wb"))
        for _ in range(3):  # a port that was free a moment ago may be somebody else's by now
            running = Running(free_port(), new_key("protokube"))
            (folder / "zone").write_text(ZONE_FILE)
            (folder / name).write_text(template.format(folder=folder, port=running.port, key=running.key, zone=ZONE))
            process = subprocess.Popen(command, stdout=log, stderr=log, env=debian_environment())
            stack.callback(_stop, process)
            if _comes_up(running, process):
                yield running
                return
        raise AssertionError(f"the server did not come up:\n{(folder / 'log').read_text()}")


def _comes_up(running: Running, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if running.ask(running.update(), tcp=True).rcode() == dns.rcode.NOERROR:  # nobody else has this key
                return True
        except (dns.exception.DNSException, OSError, EOFError):
            time.sleep(0.02)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def debian_program(package: str, path: str) -> str:
    """A program out of a Debian package, unpacked together with the libraries that this machine lacks."""
    return str(_roots()[package] / path)


@cache
def debian_environment() -> Mapping[str, str]:
    libraries = [str(path) for root in _roots().values() for path in root.glob("**/lib/*-linux-gnu")]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(sorted(libraries))}


WANTED = ("bind9", "knot", "bind9-dnsutils")


@cache
def _roots() -> dict[str, Path]:
    """The unpacked packages by name. Test processes run side by side: one unpacks, the others wait for it."""
    folder = CACHE / "dns"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "dns.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            half_made = CACHE / "dns.new"
            shutil.rmtree(half_made, ignore_errors=True)
            (half_made / "deb").mkdir(parents=True)
            for package in sorted({*WANTED, *_missing_here()}):
                download(package, half_made / "deb")
                (archive,) = (half_made / "deb").glob("*.deb")
                subprocess.run(["dpkg-deb", "-x", archive, half_made / package], check=True)
                archive.unlink()
            (half_made / "deb").rmdir()
            half_made.rename(folder)
    return {root.name: root for root in folder.iterdir()}


def _missing_here() -> Sequence[str]:
    """What apt would install for the wanted packages on this machine; it is asked, and does nothing."""
    command = ["apt-get", "-qq", "--simulate", "--no-install-recommends", "install", *WANTED]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:  # a fresh machine has no package lists
        subprocess.run(["apt-get", "-qq", "update"], capture_output=True, check=False)
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split()[1] for line in ran.stdout.splitlines() if line.startswith("Inst ")]
