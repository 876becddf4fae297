"""The keys and certificates of one cluster in the store, over the few calls of a store and its layout that they need.

Store and layout are passed in, so that this package depends on no kind of store. A store that refuses may mean "it
exists already", "it does not exist" or "permission denied"; a second read tells which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from protokube.errors import Refused


class StoreAccess(Protocol):
    """The calls of a store that a keystore needs."""

    @property
    def url(self) -> str: ...

    def read(self, path: str) -> Any: ...

    def create(self, path: str, data: bytes) -> object: ...

    def list_paths(self, under: str = "") -> Any: ...


class Layout(Protocol):
    """Paths of keys within a store; the module `store.layout` is one."""

    def keyset(self, cluster: str, kind: str, name: str) -> str: ...

    def certificate(self, cluster: str, name: str, serial: str) -> str: ...

    def private_key(self, cluster: str, name: str, serial: str) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Keystore:
    """Keys and certificates of one cluster."""

    store: StoreAccess
    layout: Layout
    cluster: str

    @property
    def url(self) -> str:
        return self.store.url

    def keyset(self, kind: str, name: str) -> str:
        return self.layout.keyset(self.cluster, kind, name)

    def certificate(self, name: str, serial: str) -> str:
        return self.layout.certificate(self.cluster, name, serial)

    def private_key(self, name: str, serial: str) -> str:
        return self.layout.private_key(self.cluster, name, serial)

    def read(self, path: str) -> bytes:
        data: bytes = self.store.read(path).data
        return data

    def read_or_none(self, path: str) -> bytes | None:
        """None only if the store lists the folder without it: a file that we may not read is not absent."""
        try:
            return self.read(path)
        except Refused:
            there = path in self.store.list_paths(path.rpartition("/")[0])
            return self.read(path) if there else None  # it may have been created in between

    def create(self, path: str, data: bytes) -> None:
        """Write the file if it does not exist; an existing file stays."""
        try:
            self.store.create(path, data)
        except Refused:
            if self.read_or_none(path) is None:
                raise
