"""Read kubeconfig files, and replace them if they are still what was read.

Runs with the rights of the files' owner (`child`). Locked as kubectl does it, by a file `.lock` that must not exist.
That lock has no owner, so one that stays is never broken: nobody knows whether a kubectl is still at work.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from protokube.errors import Refused
from protokube.host.files import write_atomic

LARGEST = 4 << 20
PATIENCE = 3.0
"""Seconds to wait for a lock: kubectl holds it for milliseconds."""
WRITING = 1.0
"""Seconds that reading waits for a lock to go."""
MODE = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The new content of a file; `before` is what was read, None if there was no file."""

    path: str
    before: bytes | None
    after: bytes


def read(path: str) -> bytes | None:
    """None if there is no file, also behind a link. Refused for anything else than a file of a bearable size."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(f"{path} is not a file", hint="set KUBECONFIG to another one")
        if status.st_size > LARGEST:
            raise Refused(f"{path} is too large for a kubeconfig", saw=f"{status.st_size} bytes")
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(LARGEST)
    finally:
        os.close(handle)


def read_all(paths: Sequence[str], patience: float = WRITING) -> dict[str, bytes | None]:
    """All files, each under the first of its names; kubectl would change a file with two names under that one, too.

    kubectl empties a file before it writes it: while there is a lock, what was read may be a part. A lock that stays
    hinders nobody from reading.
    """
    distinct: dict[str, str] = {}
    for path in paths:
        distinct.setdefault(os.path.realpath(path), path)
    names = list(distinct.values())
    locks, end = _locks(names), time.monotonic() + patience
    while True:
        before = _exist(locks)
        found = {name: read(name) for name in names}
        if not (before or _exist(locks)) or time.monotonic() > end:
            return found
        time.sleep(0.02)


def _locks(paths: Sequence[str]) -> list[str]:
    return sorted({name for path in paths for name in (lock_of(path), lock_of(os.path.realpath(path)))})


def _exist(names: Sequence[str]) -> bool:
    return any(os.path.lexists(name) for name in names)


def swap(changes: Sequence[Change], patience: float = PATIENCE) -> bool:
    """Replace the files, in this order; False, and nothing is written, if one is no longer what was read."""
    with locked([each.path for each in changes], patience):
        if any(read(each.path) != each.before for each in changes):
            return False
        targets = [(check_target(each.path), each.after) for each in changes]
        for (target, mode), after in targets:
            write_atomic(target, after, mode)
    return True


def check_target(path: str) -> tuple[Path, int]:
    """The file behind all links, and the mode that it shall have. Refused if it is not ours to replace."""
    target = Path(os.path.realpath(path))
    try:
        status = target.stat()
    except FileNotFoundError:
        check_folders(target)
        return target, MODE
    if status.st_uid != os.geteuid():
        raise Refused(
            f"{path} belongs to user {status.st_uid}, and not to {os.geteuid()}", hint=f"sudo chown $USER: {path}"
        )
    check_folders(target)
    return target, stat.S_IMODE(status.st_mode) & MODE


def check_folders(target: Path) -> None:
    """Root writes only where no other user can exchange a folder or the file meanwhile."""
    if os.geteuid() != 0:
        return
    for folder in (each for each in target.parents if each.exists()):
        status = folder.stat()
        writers = 0o022 if status.st_gid else 0o002
        if status.st_uid != 0 or (status.st_mode & writers and not status.st_mode & stat.S_ISVTX):
            raise Refused(
                f"root does not write {target}, since others may change {folder}", saw=f"owner {status.st_uid}, mode "
                f"{stat.S_IMODE(status.st_mode):o}", hint="run protokube with sudo as that user",
            )  # fmt: skip


@contextmanager
def locked(paths: Sequence[str], patience: float) -> Iterator[None]:
    """Lock files under the names that were given, and under their own; both kinds of writers see it."""
    names = _locks(paths)
    end, held = time.monotonic() + patience, list[str]()
    try:
        for name in names:
            _make_folder(Path(name).parent)
            _lock(name, end)
            held.append(name)
        yield
    finally:
        for name in held:
            Path(name).unlink(missing_ok=True)


def lock_of(path: str) -> str:
    """Two ways to one folder lead to one lock, which nobody may wait for who holds it."""
    folder, _, name = path.rpartition("/")
    return f"{os.path.realpath(folder or '/').rstrip('/')}/{name}.lock"


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        check_folders(folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _lock(name: str, end: float) -> None:
    while True:
        try:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE))
        except FileExistsError:
            if time.monotonic() > end:
                raise _stays(name) from None
            time.sleep(0.05)
        else:
            return


def _stays(name: str) -> Refused:
    try:
        age = max(time.time() - Path(name).lstat().st_mtime, 0)
    except FileNotFoundError:  # it went just now; another writer may have the next one
        age = 0.0
    return Refused(
        f"{name.removesuffix('.lock')} is locked", saw=f"{name} exists for {age:.0f} s",
        hint=f"if no kubectl is at work, `rm {name}`",
    )  # fmt: skip
