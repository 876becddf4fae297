"""A small, honest Google Cloud Storage: the part of its JSON API that gcsfs and our store speak.

Honest about what the store relies on: generations only grow, a condition and the write it guards are one
step, and refusals come in Google's own words. It knows nothing of accounts, ACLs or old generations.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import threading
import time
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

PAGE = 3
"""Few objects on a page, so that every test with more than a handful pages."""


@dataclass(frozen=True)
class Blob:
    data: bytes
    generation: int
    updated: float


@dataclass
class Buckets:
    """All that the server holds. One lock: GCS promises that a conditional write is a single step."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    generations: itertools.count[int] = field(default_factory=lambda: itertools.count(1_700_000_000_000_000))
    objects: dict[str, dict[str, Blob]] = field(default_factory=dict)


class Failed(Exception):
    """A refusal on its way to the client."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16  # headers and body in one piece
    buckets: Buckets

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Tests speak for themselves."""

    def _answer(self, handle: Any) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            handle([unquote(part) for part in parts.path.strip("/").split("/")], query, body)
        except Failed as failed:
            said = json.dumps({"error": {"code": failed.status, "message": failed.message}}).encode()
            # A media download is refused in plain text, everything else in JSON.
            self._send(failed.status, failed.message.encode() if query.get("alt") == "media" else said, {})

    def _get(self, path: list[str], query: dict[str, str], body: bytes) -> None:
        match path:
            case ["storage", "v1", "b", bucket]:
                self._objects(bucket)
                self._json({"kind": "storage#bucket", "name": bucket})
            case ["storage", "v1", "b", bucket, "o"]:
                self._list(bucket, query)
            case ["storage" | "download", *_, "b", bucket, "o", name]:
                with self.buckets.lock:
                    blob = self._objects(bucket).get(name)
                if blob is None:
                    raise Failed(404, f"No such object: {bucket}/{name}")
                if query.get("alt") == "media":
                    self._send(
                        200,
                        blob.data,
                        {
                            "X-Goog-Generation": str(blob.generation),
                            "Last-Modified": formatdate(blob.updated, usegmt=True),
                        },
                    )
                else:
                    self._json(resource(bucket, name, blob))
            case _:
                raise Failed(400, f"the fake does not know GET {self.path}")

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        with self.buckets.lock:
            found = {n: b for n, b in self._objects(bucket).items() if n.startswith(query.get("prefix", ""))}
        names = sorted(name for name in found if name > query.get("pageToken", ""))
        page = names[: min(PAGE, int(query.get("maxResults", PAGE)))]
        said: dict[str, object] = {"kind": "storage#objects"}
        if page:
            said["items"] = [resource(bucket, name, found[name]) for name in page]
        if len(names) > len(page):
            said["nextPageToken"] = page[-1]
        self._json(said)

    def _post(self, path: list[str], query: dict[str, str], body: bytes) -> None:
        match path, query.get("uploadType"):
            case ["upload", "storage", "v1", "b", bucket, "o"], "media":
                self._insert(bucket, query["name"], body, query)
            case ["upload", "storage", "v1", "b", bucket, "o"], "multipart":
                about, content = parts_of(self.headers["Content-Type"], body)
                self._insert(bucket, json.loads(about)["name"], content, query)
            case _:
                raise Failed(400, f"the fake does not know POST {self.path}")

    def _insert(self, bucket: str, name: str, data: bytes, query: dict[str, str]) -> None:
        condition = query.get("ifGenerationMatch")
        if condition is not None and not condition.isdigit():
            raise Failed(400, f"Invalid value for ifGenerationMatch: {condition}")
        with self.buckets.lock:
            objects = self._objects(bucket)
            current = objects[name].generation if name in objects else 0
            if condition is not None and int(condition) != current:
                raise Failed(412, "At least one of the pre-conditions you specified did not hold.")
            blob = objects[name] = Blob(data, next(self.buckets.generations), time.time())
        self._json(resource(bucket, name, blob))

    def _objects(self, bucket: str) -> dict[str, Blob]:
        if bucket not in self.buckets.objects:
            raise Failed(404, "The specified bucket does not exist.")
        return self.buckets.objects[bucket]

    def _json(self, said: object) -> None:
        self._send(200, json.dumps(said).encode(), {"Content-Type": "application/json; charset=UTF-8"})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def resource(bucket: str, name: str, blob: Blob) -> dict[str, str]:
    """An object as Google describes it, as far as a client of ours looks."""
    return {
        "kind": "storage#object",
        "bucket": bucket,
        "name": name,
        "generation": str(blob.generation),
        "metageneration": "1",
        "size": str(len(blob.data)),
        "md5Hash": base64.b64encode(hashlib.md5(blob.data).digest()).decode(),
    }


def parts_of(content_type: str, body: bytes) -> tuple[bytes, bytes]:
    """The two parts of a multipart upload, as gcsfs writes it: bare newlines, content unencoded."""
    boundary = BytesParser().parsebytes(f"Content-Type: {content_type}\n\n".encode()).get_boundary()
    assert boundary is not None
    _, about, rest = body.split(f"--{boundary}\n".encode(), 2)
    content = rest.rpartition(f"\n--{boundary}--".encode())[0]
    return about.partition(b"\n\n")[2], content.partition(b"\n\n")[2]


class FakeGcs:
    """The server, in a thread of this process, on a free port of loopback."""

    def __init__(self, *buckets: str) -> None:
        self.buckets = Buckets(objects={name: {} for name in buckets})
        handler = type("BoundHandler", (Handler,), {"buckets": self.buckets})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
