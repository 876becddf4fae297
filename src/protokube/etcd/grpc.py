"""A minimal client for one unary gRPC call over HTTP/2: for the one call that the JSON gateway lacks.

The gateways of 3.4, and of 3.5 before 3.5.10, have no HashKV: `/v3/maintenance/hash` is another hash, of the whole
file. A client that sends one small request and reads one small reply needs no flow control, no priorities and no header
decoder: a reply without a message is an error. RFC 9113 (frames), RFC 7541 (headers).
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

from protokube.etcd.deadline import Deadline
from protokube.etcd.dial import Target

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GO_AWAY = 0, 1, 3, 4, 6, 7
END_STREAM = ACK = 1
END_HEADERS, PADDED = 4, 8
STREAM = 1
LONGEST = 1 << 20
"""Bytes of a reply at most; far more than a HashKVResponse needs."""


class NoMessage(Exception):
    """The call ended without a message: the server reported an error."""


def unary(connection: socket.socket, target: Target, method: str, message: bytes, deadline: Deadline) -> bytes:
    """Call a method on a fresh connection. Raises NoMessage, or OSError."""
    scheme = "https" if target.secure else "http"
    headers = {":method": "POST", ":scheme": scheme, ":path": method, ":authority": target.authority, "te": "trailers"}
    headers |= {"content-type": "application/grpc", "grpc-timeout": f"{max(1, int(deadline.left() * 1000))}m"}
    request = PREFACE + frame(SETTINGS, 0, 0, b"")
    request += frame(HEADERS, END_HEADERS, STREAM, b"".join(header(*each) for each in headers.items()))
    request += frame(DATA, END_STREAM, STREAM, struct.pack(">BI", 0, len(message)) + message)
    connection.settimeout(deadline.left())
    connection.sendall(request)
    return _message(b"".join(_answer(connection, deadline)))


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def header(name: str, value: str) -> bytes:
    """A literal header field without indexing and without compression."""
    return b"\0" + b"".join(_length(len(each)) + each for each in (name.encode(), value.encode()))


def _length(number: int) -> bytes:
    """An integer with a prefix of seven bits."""
    return bytes([number]) if number < 127 else b"\x7f" + varint(number - 127)


def varint(number: int) -> bytes:
    """Seven bits per byte, lowest first; HTTP/2 and protobuf both use this."""
    number &= (1 << 64) - 1  # protobuf writes a negative number as a large one
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def _answer(connection: socket.socket, deadline: Deadline) -> Iterator[bytes]:
    """The data of our stream until its end; acknowledges SETTINGS and PING on the way."""
    seen = 0
    while True:
        head = _exactly(connection, 9, deadline)
        size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
        seen += size
        if seen > LONGEST:
            raise NoMessage(f"more than {LONGEST} bytes")
        payload = _exactly(connection, size, deadline)
        if kind in (SETTINGS, PING) and not flags & ACK:
            connection.sendall(frame(kind, ACK, 0, payload if kind == PING else b""))
        elif kind == GO_AWAY or (kind == RESET and stream == STREAM):
            raise NoMessage("the server aborted the call")
        elif kind == DATA and stream == STREAM:
            yield payload[1 : size - payload[0]] if flags & PADDED else payload
        if kind in (DATA, HEADERS) and stream == STREAM and flags & END_STREAM:
            return


def _exactly(connection: socket.socket, count: int, deadline: Deadline) -> bytes:
    parts = []
    while count:
        connection.settimeout(deadline.left())
        part = connection.recv(count)
        if not part:
            raise ConnectionResetError("the connection ended within a reply")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _message(content: bytes) -> bytes:
    if len(content) < 5:
        raise NoMessage("the call ended without a message")
    compressed, size = struct.unpack(">BI", content[:5])
    if compressed or len(content) != 5 + size:
        raise NoMessage("the reply is compressed, or not exactly one message")
    return content[5:]
