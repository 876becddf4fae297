"""Connect to a member by its URL: DNS lookup, TCP connect and TLS handshake, all before one deadline.

Names are looked up at every connect, since a member that moved has another address. The resolver has no deadline and
can block for half a minute, so it runs in a thread that is abandoned; a second lookup waits for the first one.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from protokube.errors import Refused
from protokube.etcd.deadline import Deadline

Address = tuple[socket.AddressFamily, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """Host and port of a URL."""

    host: str
    port: int
    secure: bool

    @classmethod
    def of(cls, url: str) -> Target:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Refused(f"{url!r} is not the URL of an etcd member", want="such as https://etcd-a.internal.dev:4001")
        return cls(parts.hostname, parts.port or 2379, parts.scheme == "https")

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Lookup(threading.Thread):
    """One lookup by the system's resolver."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(name=f"look up {host}", daemon=True)
        self._host, self._port = host, port
        self.found: list[Address] = []
        self.error: OSError | None = None

    def run(self) -> None:
        try:
            answer = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            self.found = [(family, address) for family, _, _, _, address in answer]
        except OSError as error:
            self.error = error
        except UnicodeError as error:  # not a valid host name
            self.error = OSError(f"{self._host!r} is not a host name: {error}")


_under_way: dict[tuple[str, int], Lookup] = {}


def look_up(host: str, port: int, deadline: Deadline) -> list[Address]:
    """The addresses of a host, in the resolver's order. Raises OSError."""
    try:
        version = ipaddress.ip_address(host).version
        return [(socket.AF_INET6 if version == 6 else socket.AF_INET, (host, port))]
    except ValueError:
        pass
    lookup = _under_way.get((host, port))
    if lookup is None or not lookup.is_alive():
        lookup = _under_way[host, port] = Lookup(host, port)
        lookup.start()
    lookup.join(deadline.left())
    if lookup.is_alive():
        raise TimeoutError(f"the resolver does not answer for {host}")
    _under_way.pop((host, port), None)
    if lookup.error is not None:
        raise lookup.error
    return lookup.found


def dial(target: Target, context: ssl.SSLContext | None, deadline: Deadline) -> socket.socket:
    """A connected socket, with TLS for https. Raises OSError, of which SSLError and TimeoutError are subclasses."""
    plain = _connect(target, deadline)
    if not target.secure:
        return plain
    if context is None:
        plain.close()
        raise ssl.SSLError(f"{target.authority} wants TLS, and we have no certificate")
    try:
        plain.settimeout(deadline.left())
        return context.wrap_socket(plain, server_hostname=target.host)
    except BaseException:
        plain.close()
        raise


def _connect(target: Target, deadline: Deadline) -> socket.socket:
    failed: OSError = OSError(f"{target.host} has no address")
    addresses = look_up(target.host, target.port, deadline)
    for tried, (family, address) in enumerate(addresses):
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(deadline.share(len(addresses) - tried).left())
            connection.connect(address)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        except OSError as error:
            connection.close()
            failed = error
    raise failed
