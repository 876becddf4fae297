"""HTTP requests to one service of Amazon: signed, through the environment's proxy, over one connection.

Reads are repeated with back-off. A write is sent once: a retry after a lost reply would fail because of its own first
attempt, and that looks the same as a change by another writer.
"""

from __future__ import annotations

import base64
import http.client
import random
import select
import ssl
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from protokube.errors import Refused
from protokube.providers.clients.aws_account import Account, Place
from protokube.providers.clients.aws_signature import encoded, signed

CONNECT_SECONDS, READ_SECONDS, ATTEMPTS = 3.0, 10.0, 3
TRANSIENT = (500, 502, 503, 504)
LONGEST_PAUSE = 20.0
ANSWER_LOST = (OSError, http.client.HTTPException)


class Unreached(Exception):
    """No connection: nothing was sent."""


class AnswerLost(Exception):
    """The request may have arrived, and there is no answer."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes


class AwsHttp:
    """One service at one address. Safe to use from several threads; requests run one at a time."""

    def __init__(self, account: Account, endpoint: str | None, read_seconds: float = READ_SECONDS) -> None:
        self._account, self._read_seconds = account, read_seconds
        self._lock = threading.Lock()
        self._place = account.place(endpoint)
        self._url, self._proxy = _parts(self._place)
        self._connection: http.client.HTTPConnection | None = None

    def write(self, path: str, body: bytes) -> Reply:
        """POST once. Raises Unreached and AnswerLost; Refused and TryLater about the account."""
        return self._send("POST", path, {}, body)

    def read(self, path: str, query: Mapping[str, str], again: Callable[[Reply], bool]) -> Reply:
        """GET, repeated while the service cannot be reached or `again` says so."""
        for attempt in range(ATTEMPTS):
            last = attempt == ATTEMPTS - 1
            try:
                reply = self._send("GET", path, query, b"")
                if last or not (reply.status in TRANSIENT or again(reply)):
                    return reply
            except (Unreached, AnswerLost):
                if last:
                    raise
            time.sleep(min(LONGEST_PAUSE, random.random() * 2**attempt))  # noqa: S311  # no secret
        raise AssertionError("unreachable")

    def _send(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> Reply:
        keys = self._account.keys()
        whole, host = f"{self._url.path.rstrip('/')}{path}", _host_header(self._url)
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        headers = signed(
            keys, method, host, whole, query, body,
            region=self._account.region, service=self._account.service, stamp=stamp,
        )  # fmt: skip
        more = {"Content-Type": "text/xml"} if body else {}
        target = f"{whole}?{encoded(query)}" if query else whole
        with self._lock:
            connection, before, proxied = self._connected()
            try:
                connection.request(method, f"{before}{target}", body or None, {**proxied, **headers, **more})
                answer = connection.getresponse()
                return Reply(answer.status, answer.read())
            except ANSWER_LOST as error:
                self._drop()
                raise AnswerLost(_words(error)) from error
            except BaseException:
                self._drop()
                raise

    def _connected(self) -> tuple[http.client.HTTPConnection, str, Mapping[str, str]]:
        """A connection; what comes before the path, and the headers that a proxy wants."""
        relayed = self._proxy is not None and self._url.scheme == "http"
        before = f"http://{_host_header(self._url)}" if relayed else ""
        proxied = _login(self._proxy) if relayed and self._proxy else {}
        found = self._connection
        if found is None or found.sock is None or _has_news(found):
            self._drop()
            try:
                found = self._connection = self._connect()
            except ANSWER_LOST as error:
                self._drop()
                raise Unreached(f"{self._place.url}: {_words(error)}") from error
        return found, before, proxied

    def _connect(self) -> http.client.HTTPConnection:
        via = self._proxy or self._url
        secure = self._url.scheme == "https"
        host, port = via.hostname or "", via.port or (443 if via.scheme == "https" else 80)
        found: http.client.HTTPConnection
        if secure:
            context = ssl.create_default_context(cafile=self._place.authorities or None)
            found = http.client.HTTPSConnection(host, port, timeout=CONNECT_SECONDS, context=context)
            if self._proxy:
                found.set_tunnel(self._url.hostname or "", self._url.port or 443, dict(_login(self._proxy)))
        else:
            found = http.client.HTTPConnection(host, port, timeout=CONNECT_SECONDS)
        found.connect()
        assert found.sock is not None
        found.sock.settimeout(self._read_seconds)
        return found

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _parts(place: Place) -> tuple[SplitResult, SplitResult | None]:
    """The address, and the proxy on the way to it, as the environment has it."""
    try:
        url = urlsplit(place.url)
        if url.scheme not in ("http", "https") or not url.hostname or url.port == 0:
            raise ValueError(f"{place.url!r} is not an address")
        named = urllib.request.getproxies().get(url.scheme)
        if not named or urllib.request.proxy_bypass(url.hostname):
            return url, None
        proxy = urlsplit(named if "://" in named else f"http://{named}")
        if proxy.scheme != "http" or not proxy.hostname or proxy.port == 0:
            raise ValueError(f"{named!r} is not a proxy that we can use")
        return url, proxy
    except ValueError as error:
        raise Refused("no request can be sent", saw=str(error), hint="correct the endpoint URL") from error


def _host_header(url: SplitResult) -> str:
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname or ""
    usual = {"http": 80, "https": 443}[url.scheme]
    return f"{host}:{url.port}" if url.port and url.port != usual else host


def _login(proxy: SplitResult) -> Mapping[str, str]:
    if not proxy.username:
        return {}
    text = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(text.encode()).decode()}"}


def _has_news(connection: http.client.HTTPConnection) -> bool:
    """Whether an idle connection was closed by the other side."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
