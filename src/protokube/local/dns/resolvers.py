"""The resolvers of the user's machine, as in its current /etc/resolv.conf."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path

RESOLV_CONF = Path("/etc/resolv.conf")
MOST = 3
"""As many as the resolver of the C library uses; it ignores the rest."""
LOCAL: tuple[str, ...] = ("127.0.0.1",)
"""The default without any `nameserver` line: resolv.conf(5)."""


def nameservers(text: str) -> tuple[str, ...]:
    """Addresses of resolvers, in the order in which they are queried."""
    found = [words[1] for line in text.splitlines() if (words := line.split())[:1] == ["nameserver"] and words[1:]]
    return tuple(dict.fromkeys(_addresses(found)))[:MOST] or LOCAL


def _addresses(texts: Iterable[str]) -> Iterable[str]:
    for text in texts:
        try:
            yield str(ip_address(text))
        except ValueError:  # not an IP address
            continue


class Resolvers:
    """Reads the file again when it changed: a laptop changes networks."""

    def __init__(self, file: Path = RESOLV_CONF) -> None:
        self._file = file
        self._seen: tuple[int, int, int] | None = None
        self._found = LOCAL

    def current(self) -> tuple[str, ...]:
        try:
            status = self._file.stat()
            seen = (status.st_ino, status.st_mtime_ns, status.st_size)
            if seen != self._seen:
                self._found, self._seen = nameservers(self._file.read_text(errors="replace")), seen
        except OSError:
            self._found, self._seen = LOCAL, None
        return self._found
