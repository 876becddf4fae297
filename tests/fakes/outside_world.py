"""A laptop with a network, and the outside world: two network namespaces of the test's own, and servers that count.

Nothing of it is connected to this machine's own network. 198.51.100.0/24 is for documentation: nobody has it.
"""

from __future__ import annotations

import secrets
import socket
import socketserver
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

from fakes.registry import DIGEST, Page, digest
from protokube.images import packages
from protokube.images.build import FOLDERS
from protokube.local.bringup import CACHE
from protokube.local.host import network
from protokube.local.outside import slirp

LAPTOP, WEB, RESOLVER = "198.51.100.1", "198.51.100.2", "198.51.100.53"
WEB_NAME, LONG_NAME = "web.example", "long.example"
LONG = [f"198.51.100.{number % 250}" for number in range(200)]
"""More addresses than fit into an answer by UDP."""
STEPS = """
mount --make-private /
mount --make-private /run 2> /dev/null || true
mount --bind "$1" /etc/resolv.conf
shift
exec "$@"
"""
"""In a mount namespace of its own, with another resolv.conf; named networks stay those of the machine."""
CHANGING = ("nf_conntrack_count",)
"""Sysctls that count."""


@dataclass
class Counted:
    """Who came, and what they wanted."""

    seen: list[tuple[str, str]] = field(default_factory=list)

    @property
    def wanted(self) -> list[str]:
        return [what for _, what in self.seen]

    @property
    def sources(self) -> set[str]:
        return {source for source, _ in self.seen}


class World:
    """The laptop, and who answers it from outside."""

    def __init__(self, folder: Path) -> None:
        self.laptop, self.outside = (f"pk{kind}-{secrets.token_hex(3)}" for kind in ("lap", "out"))
        self.resolv_conf = folder / "resolv.conf"
        self.web, self.names = Counted(), Counted()
        self.pages: dict[str, Page] = {}
        """Of the server outside, by their places."""
        self.loopback = Counted()
        """Of a server on the laptop's own 127.0.0.1."""
        self._stack = ExitStack()

    @property
    def within(self) -> Sequence[str]:
        """For a command that is to run on the laptop."""
        enter = ["nsenter", f"--net=/run/netns/{self.laptop}", "unshare", "--mount", "--propagation=unchanged"]
        return [*enter, "sh", "-ec", STEPS, "sh", str(self.resolv_conf)]

    def __enter__(self) -> Self:
        for name in (self.laptop, self.outside):
            subprocess.run(["ip", "netns", "add", name], check=True)
            self._stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=True)
            subprocess.run(
                ["ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"], check=True
            )
        cable = ["link", "add", "wlan0", "type", "veth", "peer", "name", "out0", "netns", self.outside]
        self._ip(self.laptop, *cable)
        for name, device, addresses in ((self.laptop, "wlan0", [LAPTOP]), (self.outside, "out0", [WEB, RESOLVER])):
            for address in addresses:
                self._ip(name, "address", "add", f"{address}/24", "dev", device)
            for each in ("lo", device):
                self._ip(name, "link", "set", each, "up")
        self.resolv_conf.write_text(f"nameserver {RESOLVER}\n")
        with network.enter(network.switch_path(self.outside)):
            self._serve(socketserver.ThreadingTCPServer((WEB, 80), _web(self.web, self.pages)))
            self._serve(socketserver.ThreadingUDPServer((RESOLVER, 53), _names(self.names)))
            self._serve(socketserver.ThreadingTCPServer((RESOLVER, 53), _names_by_tcp(self.names)))
        with network.enter(network.switch_path(self.laptop)):
            self._serve(socketserver.ThreadingTCPServer(("127.0.0.1", 8080), _web(self.loopback)))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _serve(self, server: socketserver.BaseServer) -> None:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        for close in (server.server_close, thread.join, server.shutdown):  # the last one is called first
            self._stack.callback(close)

    def _ip(self, name: str, *words: str) -> str:
        return subprocess.run(["ip", "-n", name, *words], check=True, capture_output=True, text=True).stdout

    def laptop_network(self) -> dict[str, str]:
        """Everything of the laptop's own network that could have been changed, in words."""
        rules = [*packet_rules(), "list", "ruleset"]
        found = {
            "links": self._ip(self.laptop, "-d", "link"),
            "addresses": self._ip(self.laptop, "address"),
            "routes": self._ip(self.laptop, "route", "show", "table", "all"),
            "rules": self._ip(self.laptop, "rule"),
            "neighbours": " ".join(sorted(line.split()[0] for line in self._ip(self.laptop, "neigh").splitlines())),
            "packet rules": subprocess.run(
                ["ip", "netns", "exec", self.laptop, *rules], check=True, capture_output=True, text=True
            ).stdout,
        }
        with network.enter(network.switch_path(self.laptop)):
            for file in sorted(Path("/proc/sys/net").rglob("*")):
                if file.is_file() and file.name not in CHANGING:
                    found[str(file)] = _read(file)
        return found


@contextmanager
def a_world() -> Iterator[World]:
    slirp.obtain(CACHE)  # from Debian's packages, which cannot be reached from inside
    with tempfile.TemporaryDirectory(prefix="pk-world-", dir="/tmp") as folder, World(Path(folder)) as world:
        yield world


def way_outside(**more: object) -> dict[str, object]:
    """What `up` would tell the daemon."""
    program = slirp.obtain(CACHE)
    told: dict[str, object] = {
        "isolated": False, "program": program.path, "libraries": list(program.libraries),
        "pods": ["100.96.0.0/11"], "services": ["100.64.0.0/13"], "domains": ["cluster.local"],
    }  # fmt: skip
    return {**told, **more}


def packet_rules() -> list[str]:
    """A command that shows the rules of nftables; it is installed nowhere."""
    package = packages.unpack_whole("nftables", CACHE)
    folders = [str(folder) for root in package.libraries for inside in FOLDERS for folder in root.glob(inside)]
    return ["env", f"LD_LIBRARY_PATH={':'.join(folders)}", str(package.root / "usr/sbin/nft")]


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError as why:
        return str(why.errno)


def _web(counted: Counted, pages: Mapping[str, Page] | None = None) -> type[socketserver.BaseRequestHandler]:
    class Web(socketserver.StreamRequestHandler):
        """Has some pages; at any other place it tells who it sees."""

        def handle(self) -> None:
            method, place, *_ = self.rfile.readline().decode().split()
            counted.seen.append((self.client_address[0], place))
            while self.rfile.readline().strip():
                pass
            kind, body = (pages or {}).get(place, ("text/plain", self.client_address[0].encode()))
            head = f"Content-Length: {len(body)}\r\nContent-Type: {kind}\r\n{DIGEST}: {digest(body)}\r\n"
            self.wfile.write(f"HTTP/1.0 200 OK\r\n{head}\r\n".encode() + (body if method == "GET" else b""))

    return Web


def _answer(counted: Counted, source: str, wire: bytes, *, tcp: bool) -> bytes:
    query = dns.message.from_wire(wire)
    asked = query.question[0]
    name = asked.name.to_text(omit_final_dot=True)
    counted.seen.append((source, f"{name} {dns.rdatatype.to_text(asked.rdtype)} {'tcp' if tcp else 'udp'}"))
    reply = dns.message.make_response(query, recursion_available=True)
    addresses = {WEB_NAME: [WEB], LONG_NAME: LONG}.get(name)
    if addresses and asked.rdtype == dns.rdatatype.A:
        reply.answer = [dns.rrset.from_text_list(asked.name, 60, "IN", "A", addresses)]
    elif addresses is None:
        reply.set_rcode(dns.rcode.NXDOMAIN)
    return reply.to_wire(max_size=65535 if tcp else 512, prefer_truncation=True)


def _names(counted: Counted) -> type[socketserver.BaseRequestHandler]:
    class Names(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            wire, server = self.request
            reply = _answer(counted, self.client_address[0], wire, tcp=False)
            assert isinstance(server, socket.socket)
            server.sendto(reply, self.client_address)

    return Names


def _names_by_tcp(counted: Counted) -> type[socketserver.BaseRequestHandler]:
    class Names(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            length = int.from_bytes(self.rfile.read(2), "big")
            reply = _answer(counted, self.client_address[0], self.rfile.read(length), tcp=True)
            self.wfile.write(len(reply).to_bytes(2, "big") + reply)

    return Names
