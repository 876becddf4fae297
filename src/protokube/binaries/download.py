"""Download one file over HTTP; a partial download is resumed with a Range request (RFC 9110, 14.2).

A server may answer a Range request with the whole file, and a connection may end early without an error: only the
announced length, and then the checksum, show that a file is complete. Retries are up to the caller.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

SECONDS_OF_SILENCE = 30.0
MOST_REDIRECTS = 5
AT_ONCE = 1 << 18
SHORT = 1 << 16
"""Bytes; a text such as a checksum is never longer than this."""

OnReceived = Callable[[int, int | None], None]
"""Called with the bytes received so far, and the total if the server announces it: first before any is written."""


class Unreachable(Exception):
    """The server did not answer, or the connection broke; the partial file may have grown."""


class Absent(Exception):
    """The server has no such file (HTTP 404 or 410)."""


def text(url: str, silence: float = SECONDS_OF_SILENCE) -> str:
    """Download a short text."""
    with _opened(Request(url), silence) as answer, _network():  # noqa: S310
        found: bytes = answer.read(SHORT)
    return found.decode("ascii", "replace").strip()


def size_at(url: str, silence: float = SECONDS_OF_SILENCE) -> int | None:
    """The size of a file in bytes; None if the server does not tell it."""
    with _opened(Request(url, method="HEAD"), silence) as answer:  # noqa: S310
        length = answer.headers.get("Content-Length")
    return int(length) if length and length.isdecimal() else None


def fetch(url: str, partial: Path, on_received: OnReceived) -> None:
    """Complete the file `partial`, resuming after the bytes it has. Does not verify the checksum."""
    have = partial.stat().st_size if partial.exists() else 0
    request = Request(url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310
    with _opened(request) as answer:
        if answer.status == 416:  # no bytes after ours: the file has its full length; the checksum is verified later
            return
        begin = have if answer.status == 206 and _starts_at(answer, have) else 0
        if answer.status == 206 and begin != have:
            raise Unreachable(f"asked for the bytes from {have} on, it sent {answer.headers.get('Content-Range')}")
        length = answer.headers.get("Content-Length")
        whole = begin + int(length) if length and length.isdecimal() else None
        on_received(begin, whole)  # before the file is opened: it may refuse, and the file is kept as it is
        with partial.open("ab" if begin else "wb") as file:
            while data := _next(answer):
                file.write(data)
                file.flush()  # if we are killed, the next attempt resumes here
                begin += len(data)
                on_received(begin, whole)
    if whole is not None and begin < whole:
        raise Unreachable(f"the connection ended after {begin} of {whole} bytes")


class _Redirects(HTTPRedirectHandler):
    """Follows few redirects, and none to another kind of URL, such as a file of this machine."""

    max_redirections = MOST_REDIRECTS

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: http.client.HTTPMessage, newurl: str
    ) -> Request | None:
        if urlsplit(newurl).scheme not in ("http", "https"):
            raise URLError(f"it redirects to {newurl}, which is no http or https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> OpenerDirector:
    """Opens http and https alone, through the proxies that the environment names at this moment."""
    opener = OpenerDirector()
    for handler in (
        ProxyHandler(), UnknownHandler(), HTTPHandler(), HTTPSHandler(), HTTPDefaultErrorHandler(), _Redirects(),
        HTTPErrorProcessor(),
    ):  # fmt: skip
        opener.add_handler(handler)
    return opener


def _starts_at(answer: http.client.HTTPResponse, wanted: int) -> bool:
    found = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
    return found is not None and int(found[1]) == wanted


def _next(answer: http.client.HTTPResponse) -> bytes:
    with _network():
        return answer.read1(AT_ONCE)  # returns what has arrived, without waiting for more


@contextmanager
def _opened(request: Request, silence: float = SECONDS_OF_SILENCE) -> Iterator[http.client.HTTPResponse]:
    try:
        with _network():
            answer = _opener().open(request, timeout=silence)
    except HTTPError as error:
        if error.code != 416:
            error.close()
            raise (Absent if error.code in (404, 410) else Unreachable)(f"HTTP {error.code} {error.reason}") from error
        answer = error
    with answer:
        yield answer


@contextmanager
def _network() -> Iterator[None]:
    """Turn every network error into Unreachable; to be used around network calls only, not around our own disk."""
    try:
        yield
    except HTTPError:
        raise
    except URLError as why:
        raise Unreachable(str(why.reason)) from why
    except (OSError, http.client.HTTPException, UnicodeError) as why:  # UnicodeError: no name of a host
        raise Unreachable(str(why) or type(why).__name__) from why
