"""The folder of a cluster's loaded images: one archive for each content, and an index of which name is whose.

A host that starts imports what the index lists, in its order. Later entries win, as they do at import. An archive stays
as long as one of its names is its own. Each step leaves a folder that can be read: archives come before the index that
lists them, and go after it.
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
from protokube.local.base import private
from protokube.local.loading.contents import Wrong
from protokube.local.loading.reading import CHUNK, uncompressed

INDEX, LOCK = "index.json", ".lock"
SPARE = 256 * 1024 * 1024
"""Bytes that stay free: etcd's disks may lie on the same file system."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One archive in the folder."""

    sha256: str
    names: Mapping[str, str]
    """By the name that the kubelet asks for, the name that containerd gives it at import."""

    @property
    def file(self) -> str:
        return f"{self.sha256}.tar"


def owners(kept: Sequence[Kept]) -> dict[str, str]:
    """Whose each name is in the end."""
    return {name: each.sha256 for each in kept for name in each.names}


def plan(observed: Sequence[Kept], new: Sequence[Kept]) -> tuple[Kept, ...]:
    """What is to be kept: new archives last, and none of whose names nothing is left. Pure."""
    owned = owners(observed)
    coming = {each.sha256: each for each in new if any(owned.get(name) != each.sha256 for name in each.names)}
    full = [*(each for each in observed if each.sha256 not in coming), *coming.values()]
    used = set(owners(full).values())
    return tuple(each for each in full if each.sha256 in used)


def read_index(folder: Path) -> tuple[Kept, ...]:
    """Nothing, where nothing was ever loaded. Wrong if it is not an index of ours."""
    try:
        data = (folder / INDEX).read_bytes()
    except FileNotFoundError:
        return ()
    try:
        told = json.loads(data)
        return tuple(Kept(str(each["sha256"]), dict(each["names"])) for each in told["archives"])
    except (ValueError, KeyError, TypeError) as error:
        raise Wrong(f"{folder / INDEX} is not an index of images; remove it, and load them again") from error


@contextmanager
def locked(folder: Path, seconds: float) -> Iterator[None]:
    """One `load` at a time: of two that bring the same name the later one has to win on every host."""
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
    """Have the archives in the folder and in its index; the caller holds the lock."""
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
    """Refuse what would fill the file system."""
    free = shutil.disk_usage(folder).free
    if free < wanted + SPARE:
        raise Refused(
            "there is no room for these images",
            saw=f"{_mebibytes(free)} free where {folder} lies",
            want=f"{_mebibytes(wanted + SPARE)}: each host unpacks a copy of its own",
            hint="make room, or load fewer images",
        )


def sweep(folder: Path) -> None:
    """Remove what the index does not list: archives that were replaced, and what a `load` that was killed left."""
    listed = {each.file for each in read_index(folder)} | {INDEX, LOCK}
    for each in folder.iterdir():
        if each.name not in listed:
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    flush_folder(folder)


def _copy(file: Path, place: Path, sha256: str) -> None:
    """Whole and flushed, or not at all."""
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
            raise Wrong(f"{file} changed while it was read")
        unfinished.replace(place)


def _hint(why: OSError) -> str:
    return "make room" if why.errno in (errno.ENOSPC, errno.EDQUOT) else ""


def _mebibytes(count: int) -> str:
    return f"{count / 1024 / 1024:.0f} MiB"
