"""An in-memory store, for tests and for trying a spec without writing anything.

It follows the strictest rules of all stores, so that code that passes here passes on a disk. Stores opened
under one name share their content. Thread-safe, as all stores are.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from protokube.store import AlreadyThere, Changed, NotThere, Stored, Version
from protokube.store.paths import check_folder, check_free, check_path, join


@dataclass(slots=True)
class SharedFiles:
    """The files of all memory stores of one name."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    versions: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    files: dict[str, tuple[bytes, Version, float]] = field(default_factory=dict)


_SHARED: dict[str, SharedFiles] = {}


class MemoryStore:
    """Implements Store in a dictionary."""

    guards = True

    def __init__(self, name: str, prefix: str = "", clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.url = f"memory://{join(name, prefix)}"
        self._prefix = prefix
        self._shared = _SHARED.setdefault(name, SharedFiles())

    def read(self, path: str) -> Stored:
        key = self._key(path)
        with self._shared.lock:
            found = self._shared.files.get(key)
        if found is None:
            raise NotThere(path, self.url)
        return Stored(path=path, data=found[0], version=found[1], modified=found[2])

    def list_paths(self, under: str = "") -> Sequence[str]:
        folder = join(self._prefix, check_folder(under))
        with self._shared.lock:
            keys = sorted(key for key in self._shared.files if not folder or key.startswith(folder + "/"))
        return tuple(key.removeprefix(self._prefix).lstrip("/") for key in keys)

    def create(self, path: str, data: bytes) -> Version:
        key = self._key(path)
        with self._shared.lock:
            if key in self._shared.files:
                raise AlreadyThere(path, self.url)
            return self._write(key, data)

    def replace(self, path: str, data: bytes, seen: Version) -> Version:
        key = self._key(path)
        with self._shared.lock:
            found = self._shared.files.get(key)
            if found is None:
                raise Changed(path, self.url, saw="it is gone")
            if found[1] != seen:
                raise Changed(path, self.url, saw=f"version {found[1]} instead of {seen}")
            return self._write(key, data)

    def put(self, path: str, data: bytes) -> bool:
        key = self._key(path)
        with self._shared.lock:
            found = self._shared.files.get(key)
            if found is not None and found[0] == data:
                return False
            self._write(key, data)
            return True

    def close(self) -> None:
        """Nothing to close."""

    def _key(self, path: str) -> str:
        return join(self._prefix, check_path(path))

    def _write(self, key: str, data: bytes) -> Version:
        if key not in self._shared.files:
            check_free(key, self._shared.files)
        version = Version(str(next(self._shared.versions)))
        self._shared.files[key] = (data, version, self._clock())
        return version
