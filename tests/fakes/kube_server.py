"""An API server of a few kinds, over real TLS on loopback: for tests of who talks to one."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from builders.addons import MemoryKube
from builders.certificates import write_certificates
from protokube.errors import TryLater
from protokube.kube.client import ApiError
from protokube.manifests import kubeconfig


class KubeServer(ThreadingHTTPServer):
    """Passes on to objects in memory; notes every request."""

    daemon_threads = True

    def __init__(self, pki: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.kube, self.pki = MemoryKube(), pki
        self.seen: list[tuple[str, str, dict[str, str], Any]] = []
        """Method, path, headers, body."""
        self.answers: list[tuple[int, bytes]] = []
        """Given instead, in this order."""
        self.hang_up = 0
        """So many requests get no answer at all."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki / "server.crt", pki / "server.key")
        context.load_verify_locations(pki / "ca.crt")
        context.verify_mode = ssl.CERT_OPTIONAL
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is nothing to tell."""

    def kubeconfig(self, file: Path, *, embedded: bool = False) -> Path:
        ca, certificate, key = (self.pki / name for name in ("ca.crt", "client.crt", "client.key"))
        if embedded:
            data = {"ca": ca.read_bytes(), "certificate": certificate.read_bytes(), "key": key.read_bytes()}
            file.write_text(kubeconfig.by_content("test", self.url, "admin", **data))
        else:
            names = {"ca": str(ca), "certificate": str(certificate), "key": str(key)}
            file.write_text(kubeconfig.by_files("test", self.url, "admin", **names))
        return file


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: KubeServer

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        tree = json.loads(body) if body else None
        self.server.seen.append((self.command, self.path, dict(self.headers), tree))
        if self.server.hang_up:
            self.server.hang_up -= 1
            self.close_connection = True
            return
        status, answer = self.server.answers.pop(0) if self.server.answers else self.ask(tree)
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815  # names of the standard library

    def ask(self, tree: Any) -> tuple[int, bytes]:
        kube, path = self.server.kube, urlsplit(self.path).path
        try:
            match self.command:
                case "GET":
                    found = kube.get(path)
                case "POST":
                    found = kube.create(path, tree)
                case "DELETE":
                    found = kube.delete(path, uid=(tree or {}).get("preconditions", {}).get("uid", ""))
                case _ if "apply" in self.headers["Content-Type"]:
                    found = kube.apply(path, tree, manager="")
                case _:
                    found = kube.merge(path, tree)
        except ApiError as error:
            return error.status, json.dumps({"message": error.message, "reason": error.reason}).encode()
        except TryLater as error:
            return 409, json.dumps({"message": error.message, "reason": "Conflict"}).encode()
        return 200, json.dumps(found).encode()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def kube_server(work: Path) -> Iterator[KubeServer]:
    told = {"authority": "ca", "organizations": [], "names": ["127.0.0.1"], "usages": ["server auth", "client auth"]}
    pki = work / "pki"
    write_certificates(pki, {name: {**told, "commonName": name} for name in ("server", "client")})
    with serving(pki) as server:
        yield server


@contextmanager
def serving(pki: Path) -> Iterator[KubeServer]:
    """With the server.crt, server.key and ca.crt of this folder."""
    server = KubeServer(pki)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
