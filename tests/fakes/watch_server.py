"""An API server with lists and watches on loopback, and every way in which one goes wrong on request."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fakes.pages import Pages
from protokube.kube.login import Login
from protokube.kube.session import Session

Tree = dict[str, Any]
PATH = "/api/v1/things"
HURRY = 20.0
TOO_OLD = b'{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}\n'


def until(so: Callable[[], Any], what: str, seconds: float = HURRY) -> Any:
    end = time.monotonic() + seconds
    while not (found := so()):
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.002)
    return found


class WatchServer(ThreadingHTTPServer):
    """Objects of one kind at PATH, their history, and requests that were seen."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, pki: Path | None = None, port: int = 0, version: int = 100) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.lock = threading.Condition()
        self.objects: dict[str, Tree] = {}
        self.version = version
        self.history: list[tuple[int, bytes]] = []
        self.oldest = version
        """Versions before this one are gone."""
        self.lost = 0
        """The newest event that is gone: a watch that has not told it cannot go on."""
        self.pages = Pages()
        self.faults: deque[str] = deque()
        """For the next requests, one each: `500`, `410`, `cut`, `half`, `garbage`, `error`, `end`, `silent`, or ``."""
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        """Method, path and query."""
        self.headers_seen: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.scripted: deque[tuple[int, dict[str, str], bytes]] = deque()
        """Given instead, in this order."""
        self.era = 0
        """Watches of an earlier one end."""
        self.raw: list[bytes] = []
        """Chunks sent as they are to whoever watches now."""
        self.watching = 0
        self.down = False
        self.scheme = "http"
        if pki is not None:
            self.scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pki / "server.crt", pki / "server.key")
            context.load_verify_locations(pki / "ca.crt")
            context.verify_mode = ssl.CERT_OPTIONAL
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.url = f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def put(self, name: str, **fields: Any) -> None:
        with self.lock:
            kind = "MODIFIED" if name in self.objects else "ADDED"
            self.version += 1
            meta = {"name": name, "namespace": "space", "resourceVersion": str(self.version)}
            self.objects[name] = {"metadata": meta, **fields}
            self._note(kind, self.objects[name])

    def remove(self, name: str) -> None:
        with self.lock:
            if name in self.objects:
                self.version += 1
                gone = self.objects.pop(name)
                self._note("DELETED", {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}})

    def bookmark(self) -> None:
        with self.lock:
            self.version += 1
            self._note("BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}})

    def say(self, *chunks: bytes) -> None:
        with self.lock:
            self.raw.extend(chunks)
            self.lock.notify_all()

    def forget_history(self) -> None:
        with self.lock:
            self.version += 1
            self.lost = self.history[-1][0] if self.history else self.lost
            self.oldest, self.history = self.version, []
            self.pages.forget()

    def end_watches(self) -> None:
        with self.lock:
            self.era += 1
            self.lock.notify_all()

    def lists(self) -> int:
        return sum("watch" not in query and "continue" not in query for _, _, query in self.seen)

    def watches(self) -> list[dict[str, str]]:
        return [query for _, _, query in self.seen if "watch" in query]

    def _note(self, kind: str, tree: Tree) -> None:
        line = json.dumps({"type": kind, "object": tree}, ensure_ascii=False).encode() + b"\n"
        self.history.append((self.version, line))
        self.lock.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is nothing to tell."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: WatchServer

    def do_GET(self) -> None:
        server, parts = self.server, urlsplit(self.path)
        query = {key: found[0] for key, found in parse_qs(parts.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with server.lock:
            server.seen.append((self.command, parts.path, query))
            server.headers_seen.append(dict(self.headers))
            server.bodies.append(body)
            scripted = server.scripted.popleft() if server.scripted else None
            fault = server.faults.popleft() if server.faults and scripted is None else ""
        if scripted is not None:
            self.answer(*scripted)
        elif fault in ("500", "410", "403"):
            self.answer(int(fault), {}, json.dumps({"message": f"told to say {fault}"}).encode())
        elif fault == "cut":
            self.close_connection = True
        elif "watch" in query:
            self.watch(query, fault)
        else:
            self.list(query, fault)

    do_POST = do_PATCH = do_PUT = do_GET  # noqa: N815  # names of the standard library

    def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def list(self, query: dict[str, str], fault: str) -> None:
        server, limit = self.server, int(query.get("limit", "500"))
        with server.lock:
            if token := query.get("continue"):
                page = server.pages.further(token, limit)
            else:
                found = [server.objects[each] for each in sorted(server.objects)]
                page = server.pages.first(str(server.version), found, limit)
        if page is None:
            return self.answer(410, {}, b'{"message":"the token is too old","reason":"Expired"}')
        body = json.dumps(page).encode()
        if fault == "garbage":
            body = b"{" + body
        if fault == "half":
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            return None
        return self.answer(200, {}, body)

    def watch(self, query: dict[str, str], fault: str) -> None:
        server, at = self.server, int(query["resourceVersion"])
        end = time.monotonic() + float(query["timeoutSeconds"])
        with server.lock:
            if at < server.oldest:
                return self.answer(410, {}, b'{"message":"too old","reason":"Expired"}')
            era, raw = server.era, len(server.raw)
            server.watching += 1
        self.close_connection = True
        try:  # a client may be gone before it hears the first word
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.follow(at, era, raw, end, fault)
        finally:
            with server.lock:
                server.watching -= 1
        return None

    def follow(self, at: int, era: int, raw: int, end: float, fault: str) -> None:
        server, sent = self.server, 0
        if fault == "garbage":
            self.chunk(b"this is no line of a watch\n")
        elif fault == "error":
            self.chunk(TOO_OLD)
        while True:
            with server.lock:
                news = [(version, line) for version, line in server.history if version > at]
                odd = server.raw[raw:]
                over, missed = server.era != era or server.down or time.monotonic() > end, at < server.lost
                if not news and not odd and not over and not missed and fault != "end":
                    server.lock.wait(0.05)
                    continue
            if fault == "silent":
                if over:
                    return
                time.sleep(0.005)
                continue
            for each in odd:
                self.chunk(each)
            raw += len(odd)
            if missed:
                news = []
                self.chunk(TOO_OLD)
            for version, line in news:
                sent += 1
                if fault == "half":
                    self.chunk(line[: len(line) // 2])
                    return
                at = version
                self.chunk(line)
            if over or missed or fault == "end":
                with suppress(OSError):
                    self.wfile.write(b"0\r\n\r\n")
                return

    def chunk(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def watch_server(pki: Path | None = None, port: int = 0, version: int = 100) -> Iterator[WatchServer]:
    server = WatchServer(pki, port, version)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.down = True
        server.end_watches()
        server.shutdown()
        thread.join()
        server.server_close()
        until(lambda: not server.watching, "every watch has ended")


def login_to(server: WatchServer, folder: Path, user: dict[str, Any] | None = None) -> Login:
    """By a kubeconfig of a few words."""
    import yaml

    cluster = {"server": server.url} | ({"certificate-authority": "pki/ca.crt"} if server.scheme == "https" else {})
    tree = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me"}}],
        "clusters": [{"name": "one", "cluster": cluster}],
        "users": [{"name": "me", "user": user or {}}],
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(tree))
    return Login(kubeconfig=file)


@contextmanager
def session_with(server: WatchServer, folder: Path, user: dict[str, str] | None = None) -> Iterator[Session]:
    session = Session(login_to(server, folder, user))
    try:
        yield session
    finally:
        session.close()
