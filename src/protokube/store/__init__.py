"""Where configuration, keys and backups lie: one small store over files, memory, S3, GCS and plain HTTP.

Two masters, or a master and a person, may write one path in the same second. So a write that matters
says what it saw before: `create` writes only where nothing is, `replace` only over what was read. The
far side decides who was first; losing is normal and has a class of its own.

What is hard is an answer lost on its way back: the write may stand or not. Such a write is never
repeated behind the caller's back: it raises `Unsure`, and the caller reads again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NewType, Protocol

from protokube.errors import Refused, TryLater

Version = NewType("Version", str)
"""Opaque. Two reads with equal versions saw equal content; nothing else may be read into it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What lay at a path when we looked."""

    path: str
    data: bytes
    version: Version


class NotThere(Refused):
    """Nothing lies at that path."""

    def __init__(self, path: str, url: str) -> None:
        super().__init__(f"{path} is not in {url}", hint="check the name of the cluster and the store's URL")


class AlreadyThere(Refused):
    """Somebody created the path before us."""

    def __init__(self, path: str, url: str) -> None:
        super().__init__(
            f"{path} is already in {url}; it was left as it is", hint="read it, and replace it if it may go"
        )


class Changed(TryLater):
    """The path no longer holds what the caller saw; nothing was written."""

    def __init__(self, path: str, url: str, *, saw: str) -> None:
        super().__init__(
            f"{path} in {url} changed since it was read; it was left as it is",
            saw=saw,
            hint="read it again and decide again",
        )


class Unsure(TryLater):
    """A guarded write was sent and no answer came back: it may stand or not. Read again before deciding."""


class Store(Protocol):
    """Files by relative path ("dev.example.com/config") under one root.

    A path that could leave the root raises Refused. A store that does not answer raises TryLater, one that
    turns us away Refused; vendor exceptions never get this far.
    """

    @property
    def url(self) -> str:
        """Where it is, fit to print: no credentials."""

    @property
    def guards(self) -> bool:
        """Whether `create` and `replace` are atomic, whoever else writes."""

    def read(self, path: str) -> Stored:
        """What lies at the path now. Raises NotThere."""

    def list_paths(self, under: str = "") -> Sequence[str]:
        """Every path in a folder and below, sorted, relative to the store's root."""

    def create(self, path: str, data: bytes) -> Version:
        """Write where nothing is. Raises AlreadyThere, or Unsure."""

    def replace(self, path: str, data: bytes, seen: Version) -> Version:
        """Write over exactly what was seen. Raises Changed, or Unsure."""

    def put(self, path: str, data: bytes) -> bool:
        """Make the path hold the data; say whether that took a write. The last writer wins."""

    def close(self) -> None:
        """Give connections back. The store may be used again afterwards."""
