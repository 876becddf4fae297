"""JSON over one kept connection to one member, each step of it before a deadline.

What is hard is an answer that never came: the request may have been carried out. So a failure says whether anything was
sent, and a connection that the other side has closed meanwhile is noticed before something is sent on it.
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
    """Nothing came back, or nothing that could be read."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent
        """Whether the request may have arrived."""


class Stream(io.RawIOBase):
    """What comes in on a socket, for one response; a sender that drips cannot stretch the deadline."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._connection, self._deadline = connection, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.settimeout(self._deadline.left())
        return self._connection.recv_into(buffer)

    def makefile(self, *_: object) -> io.BufferedReader:
        """What a response asks of a socket."""
        return io.BufferedReader(self)


class Wire:
    """A connection to a member; open from the start, and of no more use after a NoAnswer."""

    def __init__(self, target: Target, context: ssl.SSLContext | None, deadline: Deadline) -> None:
        self.target, self.context = target, context
        try:
            self._connection = dial(target, context, deadline)
        except OSError as error:
            raise NoAnswer(_words(error), sent=False) from error

    def idle(self) -> bool:
        """Whether it can still be used: nothing comes in unasked but the news that the other side is gone."""
        try:
            return not select.select([self._connection], [], [], 0)[0]
        except (OSError, ValueError):
            return False

    def exchange(self, path: str, body: Any, deadline: Deadline) -> tuple[int, Any]:
        """Post a JSON document, or get one if there is none to post; the status and what came back."""
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
    """The JSON that came back; plain text as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace").strip()


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid for us: {error.verify_message}"
    return str(error) or type(error).__name__
