"""Stands for the clients of a machine: tells, line by line, when it heard from which API server.

One only listens, as a watch does, and would wait for ever; the other connects anew each time. A line that comes in has
the first one connect anew as well.
"""

from __future__ import annotations

import contextlib
import http.client
import ssl
import sys
import threading
import time

NAME = "api.internal.dev"
anew = threading.Event()


class Connection(http.client.HTTPSConnection):
    """To the proxy, and to nobody who cannot prove to be the API server."""

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        context = ssl.create_default_context(cafile=sys.argv[1])
        self.sock = context.wrap_socket(self.sock, server_hostname=NAME)


def heard(kind: str, server: bytes) -> None:
    print(f"{time.monotonic()} {kind} {server.decode().strip()}", flush=True)  # noqa: T201  this is what it is for


def watch() -> None:
    anew.clear()
    connection = Connection("127.0.0.1", 3988)
    connection.request("GET", "/watch")
    answer = connection.getresponse()
    while not anew.is_set() and (line := answer.readline()):
        heard("watch", line)
    connection.close()


def fresh() -> None:
    connection = Connection("127.0.0.1", 3988, timeout=10)
    connection.request("GET", "/who")
    heard("fresh", connection.getresponse().read())
    connection.close()


def again_and_again(what: object) -> None:
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException):
            what()  # type: ignore[operator]
        time.sleep(0.05)


def main() -> None:
    for what in (watch, fresh):
        threading.Thread(target=again_and_again, args=[what], daemon=True).start()
    for _ in sys.stdin:
        anew.set()


if __name__ == "__main__":
    main()
