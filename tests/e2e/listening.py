"""What listens in a host of a real cluster, and what it says to whoever comes without TLS."""

from __future__ import annotations

import socket
from pathlib import Path

from clusters.real import RealCluster
from protokube.local.host import network

LOOPBACK = ("127.", "::1", "[::1]")


def open_to_all(pid: int) -> set[tuple[str, int]]:
    """Address and port of everything that listens in the host of this process, but on loopback."""
    return {(address, port) for address, port in listeners(pid) if not address.startswith(LOOPBACK)}


def listeners(pid: int) -> list[tuple[str, int]]:
    """Address and port of everything that listens in a host, from /proc: IPv4 and IPv6."""
    found = []
    for file, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/{pid}/net/{file}").read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if state == "0A":
                address, port = local.split(":")
                raw = b"".join(bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8))
                found.append((socket.inet_ntop(family, raw), int(port, 16)))
    return found


def assert_nothing_without_tls(cluster: RealCluster, host: str, at_least: set[int]) -> None:
    """Every port that others can reach, `at_least` these, answers nothing in plain text."""
    told = next(each for each in cluster.hosts() if each["name"] == host)
    found = open_to_all(int(told["pid"]))
    assert {port for _, port in found} >= at_least
    for _, port in sorted(found):
        assert answers_in_plain_text(cluster, told["address"], port) == b"", f"port {port} of {host}"


def answers_in_plain_text(cluster: RealCluster, address: str, port: int) -> bytes:
    """What a server says to HTTP without TLS; Go's own says 400 in plain text to tell the client of its mistake."""
    with network.enter(network.switch_path(cluster.paths.switch)):
        there = socket.socket()
    there.settimeout(10)
    there.connect((address, port))
    there.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    try:
        said = there.recv(4096)
    except ConnectionError:
        said = b""
    there.close()
    return b"" if b"sent an HTTP request to an HTTPS server" in said else said
