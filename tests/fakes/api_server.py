"""An API server with all the kinds that a dns-controller asks for, over real TLS on loopback, and its faults.

Faults are words that are on or off: `away` (hangs up on everybody), `gone` (every watch is told that its version is too
old), `empty` and `half` (lists that lack objects and look complete), `page` (the second page of a list fails), `silent`
(watches are open and tell nothing), `blind` (single objects cannot be asked for).
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from builders.certificates import write_certificates
from fakes.pages import Pages
from protokube.manifests import kubeconfig

Tree = dict[str, Any]
Key = tuple[str, str, str]
"""Plural, namespace, name."""
PLURALS = {"Pod": "pods", "Node": "nodes", "Service": "services", "Ingress": "ingresses", "Lease": "leases"}
CLUSTER = "11111111-2222-3333-4444-555555555555"


def key_of(path: str) -> Key:
    """Of an object, or of a list, whose name is empty."""
    parts = path.strip("/").split("/")
    rest = parts[2 if parts[0] == "api" else 3 :]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    return rest[0], namespace, rest[1] if len(rest) > 1 else ""


class ApiServer(ThreadingHTTPServer):
    """`put` and `remove` objects; set `faults`."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, pki: Path, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.pki = pki
        self.lock = threading.Condition()
        self.objects: dict[Key, Tree] = {}
        self.version = 100
        self.history: list[tuple[int, Key, bytes]] = []
        self.faults: set[str] = set()
        self.page = 500
        """At most so many objects in one answer, whatever is asked for."""
        self.pages = Pages()
        self.requests: list[tuple[str, Key, str]] = []
        """Method, what, and `watch`, `list` or nothing."""
        self.down = False
        self.watching = 0
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki / "server.crt", pki / "server.key")
        self.context = context
        self.url = f"https://127.0.0.1:{self.server_address[1]}"
        self.put({"kind": "Namespace", "metadata": {"name": "kube-system", "uid": CLUSTER}}, plural="namespaces")

    def finish_request(self, request: Any, client_address: Any) -> None:
        """In the thread of the connection: one that is slow to shake hands keeps nobody waiting."""
        with suppress(OSError), self.context.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)

    def put(self, tree: Tree, plural: str = "") -> Tree:
        with self.lock:
            meta = tree["metadata"]
            key = (plural or PLURALS[tree["kind"]], meta.get("namespace", ""), meta["name"])
            kind = "MODIFIED" if key in self.objects else "ADDED"
            self.version += 1
            self.objects[key] = {**tree, "metadata": {**meta, "resourceVersion": str(self.version)}}
            self._note(kind, key, self.objects[key])
            return self.objects[key]

    def remove(self, plural: str, name: str, namespace: str = "default") -> None:
        with self.lock:
            gone = self.objects.pop((plural, namespace if plural != "nodes" else "", name))
            self.version += 1
            meta = {**gone["metadata"], "resourceVersion": str(self.version)}
            self._note("DELETED", (plural, meta.get("namespace", ""), name), {**gone, "metadata": meta})

    def fault(self, *words: str) -> None:
        """These are on from now on, and no others."""
        with self.lock:
            self.faults = set(words)
            self.lock.notify_all()

    def end_watches(self) -> None:
        """All clients come back, and go on where they were."""
        with self.lock:
            before, self.faults = self.faults, self.faults | {"end"}
            self.lock.notify_all()
        end = time.monotonic() + 20
        while self.watching:
            assert time.monotonic() < end, "watches do not end"
            time.sleep(0.005)
        with self.lock:
            self.faults = before

    def forget_history(self) -> None:
        """Whoever watches has to list again."""
        with self.lock:
            self.history.clear()
            self.version += 2  # who saw the very last version could go on from there with one
        self.end_watches()

    def count(self, what: str, plural: str = "") -> int:
        return sum(kind == what and plural in ("", key[0]) for _, key, kind in list(self.requests))

    def _note(self, kind: str, key: Key, tree: Tree) -> None:
        line = json.dumps({"type": kind, "object": tree}).encode() + b"\n"
        self.history.append((self.version, key, line))
        self.lock.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is nothing to tell."""

    def kubeconfig(self, file: Path) -> Path:
        names = {name: str(self.pki / f"{of}") for name, of in
                 (("ca", "ca.crt"), ("certificate", "client.crt"), ("key", "client.key"))}  # fmt: skip
        file.write_text(kubeconfig.by_files("test", self.url, "admin", **names))
        return file


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ApiServer

    def do_GET(self) -> None:
        server, parts = self.server, urlsplit(self.path)
        query = {key: found[0] for key, found in parse_qs(parts.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        key = key_of(parts.path)
        what = "watch" if "watch" in query else "" if key[2] else "list"
        with server.lock:
            server.requests.append((self.command, key, what))
            faults = set(server.faults)
        if "away" in faults or server.down:
            self.close_connection = True
        elif self.command in ("POST", "PUT"):
            self.write(key, json.loads(body))
        elif what == "watch":
            self.watch(key, query)
        elif what == "list":
            self.list(key, query, faults)
        elif "blind" in faults and key[0] != "leases":
            self.answer(500, {"message": "told to say so"})
        else:
            with server.lock:
                found = server.objects.get(key)
            self.answer(200, found) if found else self.answer(404, {"reason": "NotFound", "message": "there is none"})

    do_POST = do_PUT = do_PATCH = do_GET  # noqa: N815  # names of the standard library

    def answer(self, status: int, tree: Tree) -> None:
        body = json.dumps(tree).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def write(self, key: Key, tree: Tree) -> None:
        """Events are taken and forgotten; of leases, only the version that is there is replaced."""
        server = self.server
        if key[0] != "leases":
            return self.answer(201, tree)
        with server.lock:
            whole = ("leases", key[1], tree["metadata"]["name"])
            there = server.objects.get(whole)
            version = tree["metadata"].get("resourceVersion", "")
            if self.command == "POST" and there:
                return self.answer(409, {"reason": "AlreadyExists", "message": "there is one"})
            if self.command == "PUT" and (not there or there["metadata"]["resourceVersion"] != version):
                return self.answer(409, {"reason": "Conflict", "message": "another version"})
            return self.answer(200, server.put({**tree, "kind": "Lease"}))

    def list(self, key: Key, query: dict[str, str], faults: set[str]) -> None:
        server = self.server
        token, size = query.get("continue", ""), min(server.page, int(query.get("limit", "500")))
        if token and "page" in faults:
            return self.answer(500, {"message": "told to fail in the middle"})
        with server.lock:
            if token:
                page = server.pages.further(token, size)
            else:
                found = [tree for each, tree in sorted(server.objects.items()) if _covers(key, query, each)]
                if key[0] != "leases":
                    found = [] if "empty" in faults else found[::2] if "half" in faults else found
                page = server.pages.first(str(server.version), found, size)
        return self.answer(200, page) if page else self.answer(410, {"reason": "Expired", "message": "too old"})

    def watch(self, key: Key, query: dict[str, str]) -> None:
        server, at = self.server, int(query["resourceVersion"])
        end = time.monotonic() + float(query["timeoutSeconds"])
        with server.lock:
            oldest = server.history[0][0] if server.history else server.version
            if at + 1 < oldest or "gone" in server.faults:
                return self.answer(410, {"reason": "Expired", "message": "too old"})
            server.watching += 1
        self.close_connection = True
        try:  # a client may be gone before it hears the first word
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.follow(key, query, at, end)
        except OSError:
            pass  # the client went away
        finally:
            with server.lock:
                server.watching -= 1
        return None

    def follow(self, key: Key, query: dict[str, str], at: int, end: float) -> None:
        server, marked = self.server, time.monotonic()
        while True:
            with server.lock:
                over = server.down or {"away", "end", "gone"} & server.faults or time.monotonic() > end
                news = [(version, line) for version, each, line in server.history
                        if version > at and _covers(key, query, each)]  # fmt: skip
                silent = "silent" in server.faults
                if not over and (silent or not news):
                    server.lock.wait(0.05)
                    version = server.version
            if over:
                self.wfile.write(b"0\r\n\r\n")
                return
            if silent:
                continue
            if not news and time.monotonic() - marked > 0.5:  # a real one does so every minute
                marked = time.monotonic()
                mark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(at)}}}
                news = [(at, json.dumps(mark).encode() + b"\n")]
            for version, line in news:
                at = version
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))

    def log_message(self, *_: Any) -> None:
        pass


def _covers(key: Key, query: dict[str, str], each: Key) -> bool:
    named = query.get("fieldSelector", "").removeprefix("metadata.name=")
    return each[0] == key[0] and key[1] in ("", each[1]) and named in ("", each[2])


@contextmanager
def api_server(work: Path) -> Iterator[ApiServer]:
    told = {"authority": "ca", "organizations": [], "names": ["127.0.0.1"], "usages": ["server auth", "client auth"]}
    pki = work / "pki"
    if not pki.exists():
        write_certificates(pki, {name: {**told, "commonName": name} for name in ("server", "client")})
    server = ApiServer(pki)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.down = True
        server.fault("away")
        server.shutdown()
        thread.join()
        server.server_close()


def until(so: Callable[[], Any], what: str, seconds: float = 90) -> Any:
    end = time.monotonic() + seconds
    while not (found := so()):
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.01)
    return found
