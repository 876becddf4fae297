"""moto's S3 over real HTTP, one request at a time.

moto honours If-None-Match and If-Match, but checks and writes in two steps; with threads two conditional
writes could both win. Real S3 makes it one step, so a lock around the whole server does too.
"""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any, Self

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKIATESTING",
    "AWS_SECRET_ACCESS_KEY": "not-a-secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


class Quiet(WSGIRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Tests speak for themselves."""


class MotoS3:
    """The server, in a thread of this process, on a free port of loopback."""

    def __init__(self, *buckets: str) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)
        self._turn = threading.Lock()
        self._server = make_server("127.0.0.1", 0, self._in_turn, threaded=True, request_handler=Quiet)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._buckets = buckets
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def _in_turn(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        with self._turn:
            return list(self._app(environ, start_response))

    def __enter__(self) -> Self:
        self._thread.start()
        for bucket in self._buckets:
            urllib.request.urlopen(urllib.request.Request(f"{self.url}/{bucket}", method="PUT")).close()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
