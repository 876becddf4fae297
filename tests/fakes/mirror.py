"""A mirror of Kubernetes' releases on loopback, as bad as a test wants it, and programs that can say their version."""

from __future__ import annotations

import hashlib
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from protokube.binaries.kubernetes import KUBERNETES, PROGRAMS
from protokube.binaries.mirrors import architecture
from protokube.binaries.obtain import Origin, obtain
from protokube.binaries.product import Release
from protokube.binaries.progress import ProgressReporter

VERSION = "1.34.1"


def program(name: str, version: str = VERSION, size: int = 40_000) -> bytes:
    """A small program that says a version as the real one does, as large as we like."""
    head = f"#!/bin/sh\necho Kubernetes v{version}\nexit 0\n# {name} "
    return head.encode() + (f"{name} {version} ".encode() * size)[: size - len(head)]


def release(version: str = VERSION) -> dict[str, bytes]:
    """The files of a version, by their path, each with its checksum."""
    place = f"/v{version}/bin/linux/{architecture('Kubernetes')}"
    programs = {f"{place}/{name}": program(name, version) for name in PROGRAMS}
    sums = {f"{path}.sha256": hashlib.sha256(data).hexdigest().encode() for path, data in programs.items()}
    return {**programs, **sums}


def get_kubernetes(
    version: str | None, cache: Path, progress: ProgressReporter | None = None, **origin: Any
) -> Release:
    """As the command gets it; how is said as with its options."""
    return obtain(KUBERNETES, version, cache, Origin(**origin), progress)


def a_folder(folder: Path, version: str = VERSION, names: tuple[str, ...] = PROGRAMS) -> Path:
    """A folder of programs, as an unpacked archive would hold them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(program(name, version))
        (folder / name).chmod(0o755)
    return folder


@dataclass(slots=True)
class Mirror:
    """What a mirror holds, how it misbehaves, and what it was asked."""

    files: dict[str, bytes] = field(default_factory=release)
    at_most: int | None = None
    """So many bytes of a program per answer; then the connection ends."""
    ranges: bool = True
    holding: threading.Event | None = None
    """With `at_most`: the connection stays open until this is set."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    url: str = ""

    def asked_for(self, name: str) -> list[str]:
        """The ranges that a program was asked for with, in turn; "" is all of it."""
        return [wanted for path, wanted in self.asked if path.endswith(f"/{name}")]


@contextmanager
def serving(mirror: Mirror) -> Iterator[Mirror]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            wanted = self.headers.get("Range", "")
            mirror.asked.append((self.path, wanted))
            data = mirror.files.get(self.path)
            if data is None:
                self.send_error(404)
            else:
                self.answer(data, wanted)

        def answer(self, data: bytes, wanted: str) -> None:
            start = re.fullmatch(r"bytes=(\d+)-", wanted)
            begin = int(start[1]) if start and mirror.ranges else 0
            if start and mirror.ranges and begin >= len(data):
                self.send_error(416)
                return
            self.send_response(206 if begin else 200)
            if begin:
                self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
            self.send_header("Content-Length", str(len(data) - begin))
            self.end_headers()
            rest = data[begin:]
            small = mirror.at_most is None or len(rest) <= 300
            self.wfile.write(rest if small else rest[: mirror.at_most])
            if not small and len(rest) > (mirror.at_most or 0):
                self.wfile.flush()
                if mirror.holding:
                    mirror.holding.wait(60)
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Tests read `asked`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    mirror.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield mirror
    finally:
        if mirror.holding:
            mirror.holding.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _taken() -> socket.socket:
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    return taken


_TAKEN = (_taken(), _taken())


def dead_url(number: int = 0) -> str:
    """Where nobody listens, one of two: a port that is taken for as long as this process lives, so that nobody can."""
    return f"http://127.0.0.1:{_TAKEN[number].getsockname()[1]}"
