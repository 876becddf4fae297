"""Read a file on from one source: http and https, a file of this machine, or a member of a bundle.

A member of a bundle is a file URL with a fragment: `file:///media/rack.bundle#assets/DIGEST`.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

from protokube.binaries.download import AT_ONCE, Absent, OnReceived, Unreachable, fetch
from protokube.errors import InvalidRequest
from protokube.nodeup.assets.attempts import shown
from protokube.nodeup.assets.bundle import locate

SCHEMES = ("https", "http", "file")


def check_url(url: str, name: str) -> None:
    """InvalidRequest for a URL that is not used for assets."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    usable = (
        parts.netloc in ("", "localhost") and parts.path.startswith("/") if parts.scheme == "file" else parts.netloc
    )
    if parts.scheme not in SCHEMES or not usable:
        raise InvalidRequest(
            f"{name} has a source that cannot be used: {shown(url)!r}", want="an https, http or file URL"
        )


def read_on(url: str, partial: Path, on_received: OnReceived) -> None:
    """Complete the partial file. Raises Absent or Unreachable; OSError is about the partial file alone."""
    parts = urlsplit(url)
    if parts.scheme != "file":
        fetch(url, partial, on_received)
        return
    _copy(Path(unquote(parts.path)), unquote(parts.fragment), partial, on_received)


def bundle_of(url: str) -> str:
    """The bundle that a URL names a member of; empty if it names none."""
    parts = urlsplit(url)
    return unquote(parts.path) if parts.scheme == "file" and parts.fragment else ""


def _copy(path: Path, member: str, partial: Path, on_received: OnReceived) -> None:
    have = partial.stat().st_size if partial.exists() else 0
    try:
        source = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError) as why:
        raise Absent("there is no such file") from why
    except OSError as why:
        raise Unreachable(why.strerror or str(why)) from why
    with os.fdopen(source, "rb"):
        status = os.fstat(source)
        if not stat.S_ISREG(status.st_mode):
            raise Unreachable("it is not a file")
        start, size = locate(path, member) if member else (0, status.st_size)
        have = have if have <= size else 0
        on_received(have, size)
        with partial.open("ab" if have else "wb") as target:
            while have < size and (data := _read(source, min(AT_ONCE, size - have), start + have)):
                target.write(data)
                have += len(data)
                on_received(have, size)
    if have < size:
        raise Unreachable(f"it ends after {have} of {size} bytes")


def _read(descriptor: int, count: int, offset: int) -> bytes:
    try:
        return os.pread(descriptor, count, offset)
    except OSError as why:
        raise Unreachable(why.strerror or str(why)) from why
