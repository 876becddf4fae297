"""JSON over one persistent connection to one member, with a deadline for each call.

The hard part is a missing reply: the request may have been applied. So a failure tells whether anything was sent, and a
connection that the server has closed meanwhile is detected before a request is sent on it.
"""

from __future__ import annotations

import io
import json
import select
import socket
import ssl
from http.client import HTTPException, HTTPResponse
from typing import Any

from protokube.etcd.deadline import Deadline
from protokube.etcd.dial import Target, dial


class NoAnswer(Exception):
    """No reply came back, or none that could be read."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent
        """Whether the request may have arrived."""


class Stream(io.RawIOBase):
    """The bytes of one response from a socket; a slow sender cannot extend the deadline."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._connection, self._deadline = connection, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.settimeout(self._deadline.left())
        return self._connection.recv_into(buffer)

    def makefile(self, *_: object) -> io.BufferedReader:
        """The call of a socket that HTTPResponse needs."""
        return io.BufferedReader(self)


class Wire:
    """A connection to a member; open from the start, unusable after a NoAnswer."""

    def __init__(self, target: Target, context: ssl.SSLContext | None, deadline: Deadline) -> None:
        self.target, self.context = target, context
        try:
            self._connection = dial(target, context, deadline)
        except OSError as error:
            raise NoAnswer(_words(error), sent=False) from error

    def idle(self) -> bool:
        """Whether it can still be used: an idle connection becomes readable only when the server closes it."""
        try:
            return not select.select([self._connection], [], [], 0)[0]
        except (OSError, ValueError):
            return False

    def exchange(self, path: str, body: Any, deadline: Deadline) -> tuple[int, Any]:
        """POST a JSON document, or GET if `body` is None; returns the status and the decoded reply."""
        try:
            self._connection.settimeout(deadline.left())
        except TimeoutError as error:
            raise NoAnswer(_words(error), sent=False) from error
        try:
            self._connection.sendall(self._request(path, body))
            with HTTPResponse(Stream(self._connection, deadline), method="POST") as response:  # type: ignore[arg-type]
                response.begin()
                text = response.read()
                return response.status, _document(text)
        except (OSError, HTTPException) as error:
            raise NoAnswer(_words(error), sent=True) from error

    def close(self) -> None:
        self._connection.close()

    def _request(self, path: str, body: Any) -> bytes:
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: {self.target.authority}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        return head.encode() + content


def _document(text: bytes) -> Any:
    """The decoded JSON; plain text if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace").strip()


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid for us: {error.verify_message}"
    return str(error) or type(error).__name__
