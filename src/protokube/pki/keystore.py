"""Where the keys of one cluster lie in the store: the few things asked of a store and of its layout.

Handed in rather than imported, so that keys know nothing of kinds of stores. A store that refuses may mean "it is there
already", "it is not there", or "you may not"; which of them, a second look tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from protokube.errors import Refused


class Keeping(Protocol):
    """The part of a store that is needed here."""

    @property
    def url(self) -> str: ...

    def read(self, path: str) -> Any: ...

    def create(self, path: str, data: bytes) -> object: ...

    def list_paths(self, under: str = "") -> Any: ...


class Layout(Protocol):
    """Names of places; a module can be one."""

    def keyset(self, cluster: str, kind: str, name: str) -> str: ...

    def certificate(self, cluster: str, name: str, serial: str) -> str: ...

    def private_key(self, cluster: str, name: str, serial: str) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The keys of one cluster."""

    store: Keeping
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
        """None only if the store lists the folder without it: what may not be read is not absent."""
        try:
            return self.read(path)
        except Refused:
            there = path in self.store.list_paths(path.rpartition("/")[0])
            return self.read(path) if there else None  # it may have come in between

    def create(self, path: str, data: bytes) -> None:
        """Write where nothing is; what is there already stays."""
        try:
            self.store.create(path, data)
        except Refused:
            if self.read_or_none(path) is None:
                raise
