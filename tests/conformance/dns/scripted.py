"""A DNS server on loopback that answers just what a test tells it to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from fakes.name_servers import loopback_sockets

Say = Callable[[bytes], bytes | None]
"""The answer to a message: nothing is silence, empty closes the connection."""


@dataclass
class Scripted:
    udp: Say
    tcp: Say
    drip: bool = False
    """Send one byte at a time, with pauses."""
    port: int = 0
    asked: list[str] = field(default_factory=list)


@contextmanager
def scripted(udp: Say, tcp: Say | None = None, *, drip: bool = False) -> Iterator[Scripted]:
    server = Scripted(udp, tcp or udp, drip)
    over = threading.Event()
    datagrams, listener = loopback_sockets()
    server.port = datagrams.getsockname()[1]
    threads = [
        threading.Thread(target=_datagrams, args=(server, datagrams)),
        threading.Thread(target=_connections, args=(server, listener, over)),
    ]
    for thread in threads:
        thread.start()
    try:
        yield server
    finally:
        over.set()
        _wake(datagrams, listener)
        for thread in threads:
            thread.join()
        datagrams.close()
        listener.close()


def _wake(datagrams: socket.socket, listener: socket.socket) -> None:
    """An empty datagram ends the one thread, a closed listener the other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
        last.sendto(b"", datagrams.getsockname())
    listener.shutdown(socket.SHUT_RDWR)


def _datagrams(server: Scripted, own: socket.socket) -> None:
    while True:
        wire, client = own.recvfrom(65535)
        if not wire:
            return
        server.asked.append("udp")
        if reply := server.udp(wire):
            own.sendto(reply, client)


def _connections(server: Scripted, listener: socket.socket, over: threading.Event) -> None:
    while not over.is_set():
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection, suppress(OSError):
            connection.settimeout(5)
            length = int.from_bytes(connection.recv(2, socket.MSG_WAITALL), "big")
            wire = connection.recv(length, socket.MSG_WAITALL)
            server.asked.append("tcp")
            reply = server.tcp(wire)
            if reply is None:
                connection.recv(1)  # until the client has enough
            elif reply and server.drip:
                for byte in len(reply).to_bytes(2, "big") + reply:
                    connection.send(bytes([byte]))
                    over.wait(0.05)
            elif reply:
                connection.sendall(len(reply).to_bytes(2, "big") + reply)
