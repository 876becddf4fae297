"""A store in a folder of this machine, or of a shared file system with working locks.

Readers take no lock: writes are atomic (see `atomic`). Writers that compare first hold one lock for the whole
store. Files below pki/ and secrets/ are readable by their owner only.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.store import AlreadyThere, Changed, NotThere, Stored, Version
from protokube.store.atomic import locked, make_folder, overwrite, write_new
from protokube.store.paths import check_path, file_or_folder, folders, why_not
from protokube.store.patience import PATIENT, Patience

PRIVATE = frozenset({"pki", "secrets"})
GONE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class FileStore:
    """Implements Store below one folder."""

    guards = True

    def __init__(self, root: Path, patience: Patience = PATIENT) -> None:
        self.root = root.absolute()
        self.url = self.root.as_uri()
        self._patience = patience

    def read(self, path: str) -> Stored:
        with self._explained("read", path):
            found = self._content_and_time(path)
        if found is None:
            raise NotThere(path, self.url)
        data, modified = found
        return Stored(path=path, data=data, version=digest(data), modified=modified)

    def list_paths(self, under: str = "") -> Sequence[str]:
        with self._explained("list", under or "everything"):
            top = self._place(under) if under else self.root
            return tuple(sorted(self._walk(top))) if top.is_dir() else ()

    def create(self, path: str, data: bytes) -> Version:
        with self._explained("create", path):
            place = self._place(path)
            self._make_folders(path)
            try:
                write_new(place, data, mode_of(path))
            except FileExistsError as there:
                if place.is_dir():
                    raise file_or_folder(path, f"{path} is a folder") from there
                raise AlreadyThere(path, self.url) from there
        return digest(data)

    def replace(self, path: str, data: bytes, seen: Version) -> Version:
        with self._explained("replace", path):
            place = self._place(path)
            if not self.root.is_dir():
                raise Changed(path, self.url, saw="it is gone")
            with locked(self.root, self._patience.read):
                current = self._content(path)
                if current is None:
                    raise Changed(path, self.url, saw="it is gone")
                if (now := digest(current)) != seen:
                    raise Changed(path, self.url, saw=f"content {now[:12]} instead of {seen[:12]}")
                overwrite(place, data, mode_of(path))
        return digest(data)

    def put(self, path: str, data: bytes) -> bool:
        with self._explained("write", path):
            place = self._place(path)
            self._make_folders(path)
            with locked(self.root, self._patience.read):
                if place.is_dir():
                    raise file_or_folder(path, f"{path} is a folder")
                if self._content(path) == data:
                    return False
                overwrite(place, data, mode_of(path))
        return True

    def close(self) -> None:
        """Nothing to close."""

    def _place(self, path: str) -> Path:
        """The file of a path. A link inside the store could lead anywhere, so none is followed."""
        check_path(path)
        for name in (*folders(path), path):
            if (self.root / name).is_symlink():
                raise Refused(
                    f"refusing to follow {self.root / name}: it is a symbolic link",
                    want="plain files and folders inside a store",
                    hint="move what it points at into the store; the store itself may be reached through a link",
                )
        return self.root / path

    def _content(self, path: str) -> bytes | None:
        found = self._content_and_time(path)
        return None if found is None else found[0]

    def _content_and_time(self, path: str) -> tuple[bytes, float] | None:
        """Of one and the same file: another one may be renamed over it meanwhile."""
        try:
            with self._place(path).open("rb") as file:
                return file.read(), os.fstat(file.fileno()).st_mtime
        except GONE:
            return None

    def _walk(self, top: Path) -> Iterator[str]:
        for folder, names, files in os.walk(top, onerror=_raise):
            names[:] = [name for name in names if not why_not(name)]
            for name in files:
                place = Path(folder, name)
                path = place.relative_to(self.root).as_posix()
                if not why_not(path) and place.is_file() and not place.is_symlink():
                    yield path

    def _make_folders(self, path: str) -> None:
        if not self.root.is_dir():
            self.root.parent.mkdir(parents=True, exist_ok=True)
            make_folder(self.root, 0o755)
        for folder in folders(path):
            try:
                make_folder(self.root / folder, mode_of(folder, folder=True))
            except FileExistsError as there:
                raise file_or_folder(path, f"{folder} is a file") from there

    @contextmanager
    def _explained(self, verb: str, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise explain(error, f"cannot {verb} {path} in {self.url}") from error


def digest(data: bytes) -> Version:
    """The version of a file is the hash of its content, so it survives a copy of the store."""
    return Version(hashlib.sha256(data).hexdigest())


def mode_of(path: str, *, folder: bool = False) -> int:
    """Keys and secrets are private to their owner; all other files are world-readable."""
    around = path if folder else path.rpartition("/")[0]
    if PRIVATE.intersection(around.split("/")):
        return 0o700 if folder else 0o600
    return 0o755 if folder else 0o644


def explain(error: OSError, message: str) -> ProtokubeError:
    """The error for an error of the file system, with a hint."""
    saw = f"{error.strerror} ({error.filename})" if error.filename else str(error)
    match error.errno:
        case errno.EACCES | errno.EPERM:
            return Refused(message, saw=saw, hint="run it as the owner of the store, or correct the folder's mode")
        case errno.EEXIST | errno.ENOTDIR:
            return Refused(message, saw=saw, want="a folder there", hint="move that file away, or correct the URL")
        case errno.EROFS | errno.ENAMETOOLONG | errno.ELOOP:
            return Refused(message, saw=saw, hint="choose another place for the store")
        case errno.ENOSPC | errno.EDQUOT:
            return TryLater(message, saw=saw, hint="make room on that disk and run it again")
        case _:
            return TryLater(message, saw=saw, hint="look at the disk's health with `dmesg`, then run it again")


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):  # a folder that disappears while we list is not an error
        raise error
