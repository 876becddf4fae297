"""An archive of images as it was read: its files, and their digests. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


class ImageProblem(Exception):
    """A problem with an image or an archive, as a message for the user."""


@dataclass(frozen=True, slots=True)
class Member:
    """One file of the archive."""

    size: int
    sha256: str
    data: bytes | None = None
    """Its content, if it may be JSON."""
    compressed: bool = False
    """If so, `sha256` is not the digest of the uncompressed content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """An archive as it was read from end to end."""

    sha256: str
    """Of the archive, uncompressed."""
    size: int
    members: Mapping[str, Member]
    links: Mapping[str, str] = field(default_factory=dict)
    """Link targets by path."""
