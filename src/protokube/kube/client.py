"""A small client of one API server: one connection, a timeout for every request.

Objects are plain trees: the agent reads a few fields of a few kinds. A full Kubernetes client library takes longer to
import than the agent takes to start.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from protokube.errors import Refused, TryLater

PATIENCE = 5.0
JSON, MERGE, APPLY = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"
Tree = dict[str, Any]
Query = Mapping[str, str]


class NoAnswer(TryLater):
    """The API server does not answer: another request now would only wait for the same timeout."""


class ApiError(Refused):
    """The API server answered with an error."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


class KubeApi:
    """One API server. Safe to use from several threads; requests run one at a time."""

    def __init__(
        self,
        server: str,
        *,
        ca: Path,
        certificate: Path | None = None,
        key: Path | None = None,
        token: str = "",
        patience: float = PATIENCE,
    ) -> None:
        parts = urlsplit(server)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._ca, self._certificate, self._key, self._patience = ca, certificate, key, patience
        self._files = [each for each in (ca, certificate, key) if each is not None]
        self._headers = {"Accept": JSON} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._connection: http.client.HTTPSConnection | None = None
        self._stamp: tuple[int, ...] = ()
        self._lock = threading.Lock()

    def get(self, path: str, **query: str) -> Tree:
        return self.request("GET", path, query=query)

    def create(self, path: str, tree: Tree) -> Tree:
        return self.request("POST", path, tree)

    def merge(self, path: str, tree: Tree) -> Tree:
        return self.request("PATCH", path, tree, kind=MERGE)

    def apply(self, path: str, tree: Tree, *, manager: str) -> Tree:
        """Server-side apply; takes over fields that another manager owns."""
        return self.request("PATCH", path, tree, kind=APPLY, query={"fieldManager": manager, "force": "true"})

    def delete(self, path: str, *, uid: str = "") -> Tree:
        """Delete the object and its dependents; with a uid, only the object that has it."""
        options: Tree = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        return self.request("DELETE", path, options | ({"preconditions": {"uid": uid}} if uid else {}))

    def text(self, path: str, **query: str) -> str:
        """GET a response that is not an object, such as /readyz."""
        status, body = self._exchange("GET", path, None, JSON, query)
        if status != 200:
            raise ApiError(status, "", body.decode(errors="replace").strip()[:300])
        return body.decode(errors="replace")

    def request(
        self,
        method: str,
        path: str,
        tree: Tree | None = None,
        *,
        kind: str = JSON,
        query: Mapping[str, str] | None = None,
    ) -> Tree:
        """Raises ApiError if the server refuses, TryLater if it does not answer or asks to retry."""
        status, body = self._exchange(method, path, tree, kind, query or {})
        try:
            answer: Any = json.loads(body)
        except ValueError:
            answer = {"message": body.decode(errors="replace").strip()[:300]}
        if status < 300 and isinstance(answer, dict):
            return answer
        error_body = answer if isinstance(answer, dict) else {}
        message = f"{method} {path}: {error_body.get('message') or f'status {status}'}"
        reason = str(error_body.get("reason", ""))
        # a conflict: the object changed since it was read, so the caller must read it and decide again
        if status in (429, 500, 502, 503, 504) or (status == 409 and reason == "Conflict"):
            raise TryLater(message)
        raise ApiError(status, reason, message)

    def _exchange(self, method: str, path: str, tree: Tree | None, kind: str, query: Query) -> tuple[int, bytes]:
        target = f"{path}?{urlencode(query)}" if query else path
        body = None if tree is None else json.dumps(tree).encode()
        headers = self._headers | ({"Content-Type": kind} if body else {})
        with self._lock:
            for attempt in (1, 2):
                reused = self._connection is not None
                try:
                    connection = self._connected()
                    connection.request(method, target, body, headers)
                    answer = connection.getresponse()
                    return answer.status, answer.read()
                except (OSError, http.client.HTTPException) as error:
                    self.close()
                    # an idle connection that the server closed says nothing about its health; a timeout does
                    if attempt == 1 and reused and method != "POST" and not isinstance(error, TimeoutError):
                        continue
                    raise NoAnswer(f"the API server at {self._host}:{self._port} does not answer: {error}") from error
        raise AssertionError("unreachable")

    def _connected(self) -> http.client.HTTPSConnection:
        stamp = tuple(each.stat().st_mtime_ns for each in self._files)
        if self._connection is None or stamp != self._stamp:
            self.close()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # the default context trusts CAs from the environment
            context.load_verify_locations(self._ca)
            if self._certificate is not None:
                context.load_cert_chain(self._certificate, self._key)
            self._connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=self._patience, context=context
            )
            self._stamp = stamp
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
