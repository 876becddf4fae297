"""The folder of a cluster's loaded images: archives by content, and an index that maps names to archives.

A starting host imports the archives in the order of the index, so later entries win. An archive is kept as long as at
least one name refers to it. The folder is consistent after every step: archives are written before the index that lists
them, and removed after it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from protokube.errors import Refused, TryLater
from protokube.host.files import draft, flush_folder, write_atomic
from protokube.images.contents import ImageProblem
from protokube.images.reading import CHUNK, uncompressed
from protokube.local.base import private

INDEX, LOCK = "index.json", ".lock"
SPARE = 256 * 1024 * 1024
"""Bytes to keep free: etcd's disks may be on the same file system."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One archive in the folder, and its image names."""

    sha256: str
    names: Mapping[str, str]
    """By the full name that the kubelet requests: the name that containerd uses at import."""

    @property
    def file(self) -> str:
        return f"{self.sha256}.tar"


def owners(kept: Sequence[Kept]) -> dict[str, str]:
    """By name: the digest of the archive that provides it; later archives win."""
    return {name: each.sha256 for each in kept for name in each.names}


def plan(observed: Sequence[Kept], new: Sequence[Kept]) -> tuple[Kept, ...]:
    """The archives to keep: new ones last, without those that no name refers to any more. Pure."""
    owned = owners(observed)
    coming = {each.sha256: each for each in new if any(owned.get(name) != each.sha256 for name in each.names)}
    full = [*(each for each in observed if each.sha256 not in coming), *coming.values()]
    used = set(owners(full).values())
    return tuple(each for each in full if each.sha256 in used)


def read_index(folder: Path) -> tuple[Kept, ...]:
    """The stored archives; empty if nothing was ever loaded. ImageProblem if the index is invalid."""
    try:
        data = (folder / INDEX).read_bytes()
    except FileNotFoundError:
        return ()
    try:
        document = json.loads(data)
        return tuple(Kept(str(each["sha256"]), dict(each["names"])) for each in document["archives"])
    except (ValueError, KeyError, TypeError) as error:
        raise ImageProblem(f"{folder / INDEX} is not an index of images; remove it, and load them again") from error


@contextmanager
def locked(folder: Path, seconds: float) -> Iterator[None]:
    """Lock the folder: of two `load` commands with the same name, the later one must win on every host."""
    private.make_folder(folder)
    handle = private.open_file(folder / LOCK, os.O_RDWR)
    try:
        end = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise TryLater(
                        "another `protokube load image` is at work", saw=f"{folder / LOCK} is locked"
                    ) from None
                time.sleep(0.1)
        yield
    finally:
        os.close(handle)


def keep(folder: Path, wanted: Sequence[tuple[Path, Kept]]) -> tuple[Kept, ...]:
    """Copy the archives into the folder and update its index; the caller holds the lock."""
    chosen = plan(read_index(folder), [kept for _, kept in wanted])
    try:
        for file, kept in wanted:
            if not (folder / kept.file).exists():
                _copy(file, folder / kept.file, kept.sha256)
        tree = {"archives": [{"sha256": each.sha256, "names": dict(each.names)} for each in chosen]}
        write_atomic(folder / INDEX, json.dumps(tree, indent=1).encode(), private.FILE)
    except OSError as why:
        raise Refused(f"cannot keep the images in {folder}: {why.strerror}", hint=_hint(why)) from why
    finally:
        sweep(folder)
    return chosen


def need_room(folder: Path, wanted: int) -> None:
    """Refused if there is not enough disk space."""
    free = shutil.disk_usage(folder).free
    if free < wanted + SPARE:
        raise Refused(
            "there is no room for these images",
            saw=f"{_mebibytes(free)} free where {folder} lies",
            want=f"{_mebibytes(wanted + SPARE)}: each host unpacks a copy of its own",
            hint="make room, or load fewer images",
        )


def sweep(folder: Path) -> None:
    """Remove files that the index does not list: replaced archives, and leftovers of a killed `load`."""
    listed = {each.file for each in read_index(folder)} | {INDEX, LOCK}
    for each in folder.iterdir():
        if each.name not in listed:
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    flush_folder(folder)


def _copy(file: Path, place: Path, sha256: str) -> None:
    """Copy a file atomically, uncompressed and flushed."""
    digest = hashlib.sha256()
    with draft(place, None) as unfinished:
        with (
            uncompressed(file) as source,
            os.fdopen(private.open_file(unfinished, os.O_WRONLY | os.O_EXCL), "wb") as copy,
        ):
            while data := source.read(CHUNK):
                digest.update(data)
                copy.write(data)
            copy.flush()
            os.fsync(copy.fileno())
        if digest.hexdigest() != sha256:
            raise ImageProblem(f"{file} changed while it was read")
        unfinished.replace(place)


def _hint(why: OSError) -> str:
    return "make room" if why.errno in (errno.ENOSPC, errno.EDQUOT) else ""


def _mebibytes(count: int) -> str:
    return f"{count / 1024 / 1024:.0f} MiB"
