"""Put a version into the cache atomically, also with concurrent processes and after a kill at any time.

Files are prepared in a draft folder that readers ignore, flushed, and renamed. A lock allows one process at a time: the
second one waits, and then finds the version in the cache. A draft left behind by a kill is reused, so that a download
resumes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protokube.binaries.product import COMPLETE, Product, Release
from protokube.binaries.progress import ProgressReporter
from protokube.errors import Refused


@contextmanager
def locked(product: Product, cache: Path, progress: ProgressReporter) -> Iterator[Path]:
    """Lock the product's folder in the cache, and yield it; Refused if the cache cannot be written."""
    kept = product.versions_folder(cache)
    try:
        kept.mkdir(parents=True, exist_ok=True)
        with (kept / ".lock").open("w") as lock:
            _wait_for(product, lock.fileno(), progress)
            yield kept
    except OSError as why:
        raise Refused(
            f"cannot keep {product.name} in {kept}",
            saw=f"{why.strerror or why}: {why.filename}" if why.filename else str(why.strerror or why),
            hint="run it as root, make room, or name another folder: PROTOKUBE_CACHE, or --cache of `protokube get`",
        ) from why


def _wait_for(product: Product, lock: int, progress: ProgressReporter) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with progress.step(f"waited for another process that gets {product.name}"):
            fcntl.flock(lock, fcntl.LOCK_EX)


def draft(kept: Path, version: str) -> Path:
    """The folder in which a version is prepared; it may have files of an earlier attempt."""
    folder = kept / f".{version}.draft"
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def building(kept: Path, name: str, room: int) -> Iterator[Path]:
    """An empty build folder, removed afterwards; refused if there is not enough disk space."""
    if (free := shutil.disk_usage(kept).free) < room:
        raise Refused(f"too little room for a build in {kept}", saw=f"{free >> 20} MB", want=f"{room >> 20} MB")
    folder = kept / name
    shutil.rmtree(folder, ignore_errors=True)  # left by a build that was killed
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def finish(product: Product, prepared: Path, kept: Path, version: str) -> Release:
    """Check the version of a prepared folder and rename it to its final name."""
    programs = {name: prepared / name for name in product.programs}
    for path in programs.values():
        path.chmod(0o755)
        _flush(path)
    if (found := product.version(programs[product.programs[0]])) != version:
        shutil.rmtree(prepared)
        raise Refused(
            f"the files for {product.name} {version} are of another version",
            saw=f"{product.programs[0]} says {found}",
            hint="use another mirror or folder",
        )
    for other in prepared.iterdir():
        if other.name not in programs:
            other.unlink()
    (prepared / COMPLETE).touch()
    _flush(prepared)
    folder = kept / version
    if folder.exists():  # made by hand, or incomplete: find() ignored it
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
