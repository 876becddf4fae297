"""The state store for configuration, keys and backups: one small interface over files, memory, S3, GCS and HTTP.

Two masters, or a master and a person, may write one path in the same second. So writes are conditional: `create` writes
only if the path does not exist, `replace` only over the version that was read. The backend decides who was first;
losing is normal and has its own exceptions.

The hard part is a lost reply: the write may have been applied or not. Such a write is never retried silently: it raises
`Unsure`, and the caller reads again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NewType, Protocol

from protokube.errors import Refused, TryLater

Version = NewType("Version", str)
"""Opaque. Two reads with equal versions saw equal content; it has no other meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The content of a path, with its version."""

    path: str
    data: bytes
    version: Version
    modified: float | None = None
    """When it was last written, in seconds since 1970 by the store's own clock; None where the store does not tell."""


class NotThere(Refused):
    """The path does not exist."""

    def __init__(self, path: str, url: str) -> None:
        super().__init__(f"{path} is not in {url}", hint="check the name of the cluster and the store's URL")


class AlreadyThere(Refused):
    """The path exists already."""

    code = "exists"

    def __init__(self, path: str, url: str) -> None:
        super().__init__(
            f"{path} is already in {url}; it was left as it is", hint="read it, and replace it if it is not needed"
        )


class Changed(TryLater):
    """The path no longer has the version that the caller read; nothing was written."""

    def __init__(self, path: str, url: str, *, saw: str) -> None:
        super().__init__(
            f"{path} in {url} changed since it was read; it was left as it is",
            saw=saw,
            hint="read it again and decide again",
        )


class Unsure(TryLater):
    """A conditional write was sent and no reply came: it may have been applied or not. Read again before deciding."""


class Store(Protocol):
    """Files by relative path ("dev.example.com/config") under one root.

    A path that could leave the root raises Refused. A store that does not answer raises TryLater, one that
    rejects us Refused; vendor exceptions are translated.
    """

    @property
    def url(self) -> str:
        """The URL without credentials, for messages."""

    @property
    def guards(self) -> bool:
        """Whether `create` and `replace` are atomic with concurrent writers."""

    def read(self, path: str) -> Stored:
        """The current content of the path. Raises NotThere."""

    def list_paths(self, under: str = "") -> Sequence[str]:
        """Every path in a folder and below, sorted, relative to the store's root."""

    def create(self, path: str, data: bytes) -> Version:
        """Write a path that does not exist. Raises AlreadyThere, or Unsure."""

    def replace(self, path: str, data: bytes, seen: Version) -> Version:
        """Write over exactly the version `seen`. Raises Changed, or Unsure."""

    def put(self, path: str, data: bytes) -> bool:
        """Make the path hold the data; return whether that took a write. The last writer wins."""

    def close(self) -> None:
        """Close connections. The store may be used again afterwards."""
