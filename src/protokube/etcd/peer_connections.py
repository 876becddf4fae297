"""Abort connections of etcd to a peer whose machine vanished without closing them.

etcd writes to such a connection until the buffer of the kernel is full, and then waits: only after its write failed
does it take a connection of the same member, which serves on another machine by now. With a leader that has just been
elected, that is 10 s later. The kernel knows within seconds that nothing comes back, since it retransmits in vain.
Once it is aborted, etcd takes the new connection. A wrong guess costs one reconnection: etcd dials its peers again
within 0.1 s.

Linux reports connections and aborts them over netlink: sock_diag(7); `ss --kill` does the same.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from protokube.errors import Refused

SOCK_DIAG_BY_FAMILY, SOCK_DESTROY = 20, 21
NETLINK_SOCK_DIAG, DONE, ERROR = 4, 3, 2
SECONDS, LARGEST = 2.0, 1 << 16
REQUEST, ACK, DUMP = 0x1, 0x4, 0x300
ESTABLISHED, CLOSE_WAIT = 1, 8
"""TCP states. In the latter the other end has said that it sends no more, as a process does that is killed."""
HEADER = struct.Struct("=IHHII")
WANTED = struct.Struct("=BBBxI48s")
"""inet_diag_req_v2: family, protocol, extensions, states, and the identity of the socket."""
FOUND = struct.Struct("=BBBB48s")
"""The beginning of inet_diag_msg: family, state, timer, retransmissions, and the identity of the socket."""
ENDS = struct.Struct(">HH16s16s")
"""The beginning of that identity: ports and addresses."""
RETRANSMITTING = 1
"""A timer; others probe a peer that is alive and does not read."""
IN_VAIN = 3
"""Retransmissions without an answer, each after twice the time of the one before: 1.4 s where answers are quick."""
FAMILIES = (socket.AF_INET, socket.AF_INET6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One TCP connection of this machine."""

    family: int
    identity: bytes
    """Names exactly this connection, also after another one has taken over its ports."""
    local_port: int
    remote_port: int
    remote: str
    retransmissions: int
    """In a row, since the last answer."""


def read_stalled(ports: Collection[int]) -> list[Connection]:
    """Connections from or to one of these ports whose other end has stopped answering. Raises OSError."""
    found = [decode(body) for family in FAMILIES for body in _ask(SOCK_DIAG_BY_FAMILY, DUMP, family)]
    return [each for each in found if is_stalled(each) and {each.local_port, each.remote_port} & {*ports}]


def is_stalled(connection: Connection) -> bool:
    return connection.retransmissions >= IN_VAIN


def abort(connection: Connection) -> bool:
    """Whether it was still there. Refused if this kernel cannot abort connections; raises OSError."""
    try:
        for _ in _ask(SOCK_DESTROY, ACK, connection.family, connection.identity):
            pass
    except OSError as error:
        if error.errno == errno.ENOENT:
            return False
        if error.errno in (errno.EOPNOTSUPP, errno.EPERM):
            raise Refused("this machine does not let us abort connections", saw=os.strerror(error.errno)) from error
        raise
    return True


def decode(body: bytes) -> Connection:
    """One inet_diag_msg."""
    family, _, timer, retransmissions, identity = FOUND.unpack_from(body)
    local_port, remote_port, _, address = ENDS.unpack_from(identity)
    return Connection(
        family=family,
        identity=identity,
        local_port=local_port,
        remote_port=remote_port,
        remote=_address(family, address),
        retransmissions=retransmissions if timer == RETRANSMITTING else 0,
    )


def _address(family: int, address: bytes) -> str:
    if family == socket.AF_INET:
        return str(IPv4Address(address[:4]))
    six = IPv6Address(address)
    return str(six.ipv4_mapped or six)


def _ask(kind: int, flags: int, family: int, identity: bytes = bytes(48)) -> Iterator[bytes]:
    """The body of each message of the answer. Raises OSError with the error that the kernel reports."""
    states = 1 << ESTABLISHED | 1 << CLOSE_WAIT
    wanted = WANTED.pack(family, socket.IPPROTO_TCP, 0, states, identity)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(SECONDS)
        kernel.send(HEADER.pack(HEADER.size + len(wanted), kind, REQUEST | flags, 1, 0) + wanted)
        while True:
            for kind, body in _messages(kernel.recv(LARGEST)):
                if kind == DONE:
                    return
                if kind == ERROR:  # a negative errno, or 0 as an acknowledgement
                    if code := -struct.unpack_from("=i", body)[0]:
                        raise OSError(code, os.strerror(code))
                    return
                yield body


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and body of each netlink message in a datagram; they begin at multiples of four."""
    at = 0
    while at + HEADER.size <= len(data):
        length, kind, *_ = HEADER.unpack_from(data, at)
        yield kind, data[at + HEADER.size : at + length]
        at += max(length + 3 & ~3, HEADER.size)
