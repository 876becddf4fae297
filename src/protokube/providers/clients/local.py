"""Client of the local cloud over a Unix socket: one JSON object per request, one per reply, each on its own line.

Each call has its own connection and a deadline, so a daemon that hangs, is killed or restarts costs one call. The
socket identifies the machine: each machine has its own.
"""

from __future__ import annotations

import json
import os
import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from protokube.errors import CODES, InvalidRequest, ProtokubeError, Refused, TryLater
from protokube.providers.volumes import VolumeTaken

INSIDE = Path("/run/protokube/cloud.sock")
"""Where a host finds its socket."""
PATIENCE = 10.0
"""Seconds for one call, whatever it does."""
LONGEST = 16 * 1024 * 1024
"""Bytes of one line at most; a longer one is not a reply of the local cloud."""
LONGEST_PATH = 100
"""The address of a Unix socket holds 107 bytes."""
KINDS: dict[str, type[ProtokubeError]] = {
    "taken": VolumeTaken,
    "try_later": TryLater,
    "refused": Refused,
    "invalid": InvalidRequest,
}


def encode_error(error: ProtokubeError) -> dict[str, str]:
    kind = next((kind for kind, cls in KINDS.items() if isinstance(error, cls)), "refused")
    return {"kind": kind, "message": error.message, "saw": error.saw, "want": error.want, "hint": error.hint,
            "code": error.code}  # fmt: skip


def decode_error(fields: dict[str, str]) -> ProtokubeError:
    cls = KINDS.get(fields.get("kind", ""), Refused)
    details = {name: str(fields.get(name, "")) for name in ("saw", "want", "hint")}
    if fields.get("code") in CODES:
        details["code"] = fields["code"]
    return cls(str(fields.get("message", "the local cloud did not say why")), **details)


class LocalClient:
    """One socket of the local cloud."""

    def __init__(self, path: Path = INSIDE, *, patience: float = PATIENCE) -> None:
        self.path, self.patience = path, patience

    def call(self, name: str, /, **arguments: Any) -> Any:
        """The result. TryLater if no reply comes in time; raises the error that the cloud replied with."""
        end = time.monotonic() + self.patience
        try:
            with self._connected(end) as connection:
                connection.sendall(json.dumps({"call": name, **arguments}).encode() + b"\n")
                reply: Any = json.loads(_read_line(connection, end))
        except (OSError, ValueError) as error:
            raise TryLater(f"the local cloud does not answer {name}", saw=f"{self.path}: {error}") from error
        if isinstance(reply, dict) and isinstance(reply.get("error"), dict):
            raise decode_error(reply["error"])
        if not isinstance(reply, dict) or "result" not in reply:
            raise TryLater(f"the local cloud does not answer {name}", saw="an answer without a result")
        return reply["result"]

    def watch(self) -> Watch:
        """Watch for changes; TryLater if the cloud does not answer."""
        return Watch(self)

    @contextmanager
    def _connected(self, end: float) -> Iterator[socket.socket]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(max(end - time.monotonic(), 0.001))
            connect(connection, self.path)
            yield connection


class Watch:
    """An open connection that reports changes of volumes and machines."""

    def __init__(self, client: LocalClient) -> None:
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._connection.settimeout(client.patience)
            connect(self._connection, client.path)
            self._connection.sendall(b'{"call": "watch"}\n')
        except OSError as error:
            self._connection.close()
            raise TryLater("the local cloud does not answer watch", saw=f"{client.path}: {error}") from error

    def fileno(self) -> int:
        return self._connection.fileno()

    def wait(self, seconds: float) -> bool:
        """Whether anything changed within this time; all changes so far count as one. TryLater if the watch broke."""
        if not select.select([self._connection], [], [], max(seconds, 0))[0]:
            return False
        try:
            received = self._connection.recv(65536)
        except OSError as error:
            raise TryLater("the watch of the local cloud broke", saw=str(error)) from error
        if not received:
            raise TryLater("the watch of the local cloud broke", saw="it was closed")
        return True

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def connect(connection: socket.socket, path: Path) -> None:
    """Connect to a socket, however long its path."""
    with reachable(path) as address:
        connection.connect(address)


@contextmanager
def reachable(path: Path) -> Iterator[str]:
    """A path that is short enough for a socket address."""
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _read_line(connection: socket.socket, end: float) -> bytes:
    received = bytearray()
    while not received.endswith(b"\n"):
        connection.settimeout(max(end - time.monotonic(), 0.001))
        part = connection.recv(65536)
        if not part:
            raise OSError("closed before it answered")
        received += part
        if len(received) > LONGEST:
            raise OSError(f"an answer of more than {LONGEST} bytes")
    return bytes(received)
