"""Put a version into the cache, whole or not at all, whoever else does the same and whenever we are killed.

Everything is prepared in a folder that nobody looks at, flushed, and renamed. One at a time: the second of two waits,
and finds what the first one made. A draft that was left by a kill is gone on with: a download continues where it was.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protokube.binaries.product import COMPLETE, Product, Release
from protokube.binaries.telling import Teller
from protokube.errors import Refused


@contextmanager
def only_one(product: Product, cache: Path, teller: Teller) -> Iterator[Path]:
    """The cache's shelf, ours alone for as long as this lasts; what cannot be written there is told."""
    kept = product.shelf(cache)
    try:
        kept.mkdir(parents=True, exist_ok=True)
        with (kept / ".lock").open("w") as lock:
            _wait_for(product, lock.fileno(), teller)
            yield kept
    except OSError as why:
        raise Refused(
            f"cannot keep {product.name} in {kept}",
            saw=f"{why.strerror or why}: {why.filename}" if why.filename else str(why.strerror or why),
            hint="run it as root, make room, or name another folder with --cache",
        ) from why


def _wait_for(product: Product, lock: int, teller: Teller) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with teller.step(f"another one is getting {product.name}: waited for it"):
            fcntl.flock(lock, fcntl.LOCK_EX)


def draft(kept: Path, version: str) -> Path:
    """Where a version is prepared; what a former try left there is still there."""
    folder = kept / f".{version}.draft"
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def building(kept: Path, name: str, room: int) -> Iterator[Path]:
    """An empty folder to build in, gone afterwards; refused where there is too little room for a build."""
    if (free := shutil.disk_usage(kept).free) < room:
        raise Refused(f"too little room for a build in {kept}", saw=f"{free >> 20} MB", want=f"{room >> 20} MB")
    folder = kept / name
    shutil.rmtree(folder, ignore_errors=True)  # of a build that was killed
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def finish(product: Product, prepared: Path, kept: Path, version: str) -> Release:
    """Give a prepared folder its name, if it is what it is meant to be."""
    programs = {name: prepared / name for name in product.programs}
    for path in programs.values():
        path.chmod(0o755)
        _flush(path)
    if (told := product.version(programs[product.programs[0]])) != version:
        shutil.rmtree(prepared)
        raise Refused(
            f"what was got as {product.name} {version} is another version",
            saw=f"{product.programs[0]} says {told}",
            hint="get it from elsewhere",
        )
    for other in prepared.iterdir():
        if other.name not in programs:
            other.unlink()
    (prepared / COMPLETE).touch()
    _flush(prepared)
    folder = kept / version
    if folder.exists():  # by hand, or something was taken out of it: find() would not have it
        shutil.rmtree(folder)
    prepared.rename(folder)
    _flush(kept)
    return Release(version=version, folder=folder, programs=product.in_folder(folder))


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
