"""Fetch one file over HTTP; what already arrived is kept and continued (RFC 9110, 14.2).

A server may answer a wish for the rest with all of it, and a connection may end early without an error: only the length
that was promised, and then the checksum, say that a file is whole. Those who call us decide what to try next.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

SECONDS_OF_SILENCE = 30.0
AT_ONCE = 1 << 18
SHORT = 1 << 16
"""A text such as a checksum is never longer than this."""

Heard = Callable[[int, int | None], None]
"""How much there is, and of how much, if the server says."""


class Unreachable(Exception):
    """The server did not answer, or stopped in the middle; more may have arrived than before."""


class Absent(Exception):
    """The server answered that it has no such file."""


def text(url: str) -> str:
    """A short text."""
    with _opened(Request(url)) as answer, _network():  # noqa: S310
        found: bytes = answer.read(SHORT)
    return found.decode("ascii", "replace").strip()


def fetch(url: str, partial: Path, heard: Heard) -> None:
    """Make `partial` the whole file, from where it ends now. The checksum is not looked at here."""
    have = partial.stat().st_size if partial.exists() else 0
    request = Request(url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310
    with _opened(request) as answer:
        if answer.status == 416:  # there is nothing after what we have; the checksum will tell whether it is right
            return
        begin = have if answer.status == 206 and _starts_at(answer, have) else 0
        if answer.status == 206 and begin != have:
            raise Unreachable(f"asked for the bytes from {have} on, it sent {answer.headers.get('Content-Range')}")
        length = answer.headers.get("Content-Length")
        whole = begin + int(length) if length and length.isdecimal() else None
        with partial.open("ab" if begin else "wb") as file:
            heard(begin, whole)
            while data := _next(answer):
                file.write(data)
                file.flush()  # whatever kills us, the next try begins here
                begin += len(data)
                heard(begin, whole)
    if whole is not None and begin < whole:
        raise Unreachable(f"the connection ended after {begin} of {whole} bytes")


def _starts_at(answer: http.client.HTTPResponse, wanted: int) -> bool:
    found = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
    return found is not None and int(found[1]) == wanted


def _next(answer: http.client.HTTPResponse) -> bytes:
    with _network():
        return answer.read1(AT_ONCE)  # what is there, without waiting for more


@contextmanager
def _opened(request: Request) -> Iterator[http.client.HTTPResponse]:
    try:
        with _network():
            answer = urlopen(request, timeout=SECONDS_OF_SILENCE)  # noqa: S310
    except HTTPError as told:
        if told.code != 416:
            told.close()
            raise (Absent if told.code in (404, 410) else Unreachable)(f"HTTP {told.code} {told.reason}") from told
        answer = told
    with answer:
        yield answer


@contextmanager
def _network() -> Iterator[None]:
    """Whatever a connection can die of, as one error; what our own disk says passes."""
    try:
        yield
    except HTTPError:
        raise
    except URLError as why:
        raise Unreachable(str(why.reason)) from why
    except (OSError, http.client.HTTPException) as why:
        raise Unreachable(str(why) or type(why).__name__) from why
