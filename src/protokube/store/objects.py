"""A store over any bucket with conditional writes: S3 and GCS.

`ABSENT` is the version of an object that does not exist, so one conditional write serves both `create` and
`replace`. Whether a failed condition means "already there" or "changed" is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from protokube.store import AlreadyThere, Changed, NotThere, Stored, Version
from protokube.store.paths import check_folder, check_path, join, why_not
from protokube.store.patience import PATIENT, Patience

ABSENT = Version("absent")


class Content(NamedTuple):
    """One object."""

    data: bytes
    version: Version
    modified: float | None
    """Seconds since 1970, by the clock of the vendor; None if the reply does not have it."""


class Bucket(Protocol):
    """The calls that a vendor implements. It translates its exceptions."""

    url: str

    def get(self, key: str) -> Content | None:
        """Content, version and time from one reply, or None if there is no such object."""

    def keys(self, prefix: str) -> Iterable[str]:
        """Every key with a prefix, from all pages."""

    def write(self, key: str, data: bytes, only_if: Version | None) -> Version | None:
        """Write if the object still has that version (None: unconditionally). Returns None if the condition fails."""

    def close(self) -> None:
        """Close connections."""


class ObjectStore:
    """Implements Store below one prefix of a bucket."""

    guards = True

    def __init__(self, bucket: Bucket, prefix: str, patience: Patience = PATIENT) -> None:
        self.url = join(bucket.url, prefix)
        self._bucket = bucket
        self._prefix = prefix
        self._patience = patience

    def read(self, path: str) -> Stored:
        key = self._key(path)
        found = self._patience.ask(lambda: self._bucket.get(key))
        if found is None:
            raise NotThere(path, self.url)
        return Stored(path=path, data=found.data, version=found.version, modified=found.modified)

    def list_paths(self, under: str = "") -> Sequence[str]:
        folder = join(self._prefix, check_folder(under))
        keys = self._patience.ask(lambda: list(self._bucket.keys(f"{folder}/" if folder else "")))
        paths = (key[len(self._prefix) + 1 :] if self._prefix else key for key in keys)
        return tuple(sorted(path for path in paths if not why_not(path)))  # web consoles create "folder/" objects

    def create(self, path: str, data: bytes) -> Version:
        key = self._key(path)
        written = self._patience.ask(lambda: self._bucket.write(key, data, ABSENT))
        if written is None:
            raise AlreadyThere(path, self.url)
        return written

    def replace(self, path: str, data: bytes, seen: Version) -> Version:
        key = self._key(path)
        written = self._patience.ask(lambda: self._bucket.write(key, data, seen))
        if written is None:
            raise Changed(path, self.url, saw=f"another version than {seen}, or nothing")
        return written

    def put(self, path: str, data: bytes) -> bool:
        key = self._key(path)
        found = self._patience.ask(lambda: self._bucket.get(key))
        if found is not None and found.data == data:
            return False
        self._patience.ask(lambda: self._bucket.write(key, data, None))
        return True

    def close(self) -> None:
        self._bucket.close()

    def _key(self, path: str) -> str:
        return join(self._prefix, check_path(path))
