"""An API server in memory, over HTTP on loopback: objects of any kind, lists, watches, and whoever writes is noted."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from fakes.pages import Pages
from protokube.controllers.dns.read.watching import CORE, LEASES, NETWORKING

Tree = dict[str, Any]
CLUSTER = "uid-of-the-cluster"
FOLDERS = {"Pod": (CORE, "pods"), "Service": (CORE, "services"), "Node": (CORE, "nodes"),
           "Ingress": (NETWORKING, "ingresses")}  # fmt: skip


class DnsApi(ThreadingHTTPServer):
    """Objects by path; every write moves the version on and wakes whoever watches."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.changed = threading.Condition()
        self.objects: dict[str, Tree] = {}
        self.history: list[tuple[int, str, str, Tree]] = []
        """Version, what happened, path, object."""
        self.version, self.down, self.watching = 1, False, 0
        self.pages = Pages()
        self.refuse: dict[str, int] = {}
        """Paths that are answered by this status."""
        self.wrote: list[tuple[str, str, Tree]] = []
        """Method, path, body."""
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.put(f"{CORE}/namespaces/kube-system", {"metadata": {"name": "kube-system", "uid": CLUSTER}})

    def add(self, *documents: Tree) -> None:
        for document in documents:
            self.put(path_of(document), document)

    def remove(self, document: Tree) -> None:
        with self.changed:
            self._note("DELETED", path_of(document), self.objects.pop(path_of(document)))

    def put(self, path: str, tree: Tree) -> Tree:
        with self.changed:
            kind = "MODIFIED" if path in self.objects else "ADDED"
            self.objects[path] = {**tree, "metadata": {**tree["metadata"], "resourceVersion": str(self.version + 1)}}
            self._note(kind, path, self.objects[path])
            return self.objects[path]

    def lease(self, name: str = "protokube-dns-controller") -> str:
        """Who holds it."""
        with self.changed:
            return str(self.objects.get(f"{LEASES}/{name}", {}).get("spec", {}).get("holderIdentity") or "")

    def events(self) -> list[Tree]:
        with self.changed:
            return [body for method, path, body in self.wrote if method == "POST" and path.endswith("/events")]

    def kubeconfig(self, folder: Path) -> Path:
        tree = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
            "clusters": [{"name": "here", "cluster": {"server": self.url}}],
            "users": [{"name": "me", "user": {}}],
        }
        file = folder / "kubeconfig"
        file.write_text(yaml.safe_dump(tree))
        return file

    def inside(self, path: str) -> list[str]:
        """The paths of the objects in a folder, of all namespaces or of one."""
        root, _, kind = path.rpartition("/")
        return [each for each in self.objects if each.rpartition("/")[0].endswith(f"/{kind}") and each.startswith(root)]

    def _note(self, kind: str, path: str, tree: Tree) -> None:
        self.version += 1
        self.history.append((self.version, kind, path, tree))
        self.changed.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is nothing to tell."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: DnsApi

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {key: found[0] for key, found in parse_qs(parts.query).items()}
        if status := self.server.refuse.get(parts.path):
            self.answer(status, {"message": f"told to say {status}"})
        elif "watch" in query:
            self.watch(parts.path, query)
        elif parts.path in self.server.objects:
            self.answer(200, self.server.objects[parts.path])
        elif "limit" in query:
            self.list(parts.path, query)
        else:
            self.answer(404, {"message": f"{parts.path} not found", "reason": "NotFound"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.changed:
            self.server.wrote.append((self.command, self.path, body))
        if status := self.server.refuse.get(self.path):
            self.answer(status, {"message": f"told to say {status}"})
            return
        path = f"{self.path}/{body['metadata']['name']}" if self.command == "POST" else self.path
        self.answer(200, body if self.command == "PATCH" else self.server.put(path, body))

    do_PUT = do_PATCH = do_POST  # noqa: N815  # names of the standard library

    def answer(self, status: int, tree: Tree) -> None:
        body = json.dumps(tree).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def list(self, path: str, query: dict[str, str]) -> None:
        server = self.server
        size = min(int(query["limit"]), 3)  # pages are small here
        with server.changed:
            if token := query.get("continue"):
                page = server.pages.further(token, size)
            else:
                found = [server.objects[each] for each in server.inside(path) if _selected(each, query)]
                page = server.pages.first(str(server.version), found, size)
        assert page, "nothing is forgotten here"
        self.answer(200, page)

    def watch(self, path: str, query: dict[str, str]) -> None:
        server, at = self.server, int(query["resourceVersion"])
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        kind = path.rpartition("/")[2]
        while True:
            with server.changed:
                news = [each for each in server.history if each[0] > at]
                if not news and not server.down:
                    server.changed.wait(0.2)
                    continue
                if server.down:
                    return
            at = news[-1][0]
            with suppress(OSError):
                for _, what, where, tree in news:
                    if where.rpartition("/")[0].endswith(f"/{kind}") and _selected(where, query):
                        line = json.dumps({"type": what, "object": tree}).encode() + b"\n"
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                continue
            return

    def log_message(self, *_: Any) -> None:
        pass


def path_of(document: Tree) -> str:
    root, folder = FOLDERS[document["kind"]]
    meta = document["metadata"]
    inside = f"/namespaces/{meta['namespace']}" if meta.get("namespace") else ""
    return f"{root}{inside}/{folder}/{meta['name']}"


def _selected(path: str, query: dict[str, str]) -> bool:
    wanted = query.get("fieldSelector", "").removeprefix("metadata.name=")
    return not wanted or path.endswith(f"/{wanted}")


@contextmanager
def dns_api() -> Iterator[DnsApi]:
    server = DnsApi()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        with server.changed:
            server.down = True
            server.changed.notify_all()
        server.shutdown()
        thread.join()
        server.server_close()
