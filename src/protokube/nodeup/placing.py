"""Put files, links and directories in their places: atomically, never over something of another kind.

What is hard is a kill between two steps. A file is complete, with its owner and mode, before it has its name; and its
draft has a name that follows from the file's own, so the next run finds and removes it. A draft is private from its
first byte. An existing file is replaced and not changed in place: it may have other names (hard links) that are not
ours.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from protokube.errors import Refused
from protokube.host.files import flush_folder

KINDS = (
    (stat.S_ISREG, "a file"), (stat.S_ISDIR, "a directory"), (stat.S_ISLNK, "a link"), (stat.S_ISSOCK, "a socket"),
    (stat.S_ISFIFO, "a pipe"), (stat.S_ISCHR, "a character device"), (stat.S_ISBLK, "a block device"),
)  # fmt: skip
LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class Rights:
    """Exact mode and owner of a file or directory."""

    mode: int
    uid: int = 0
    gid: int = 0


def seen_at(path: Path) -> os.stat_result | None:
    """What is at a path, links not followed; None if there is nothing."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def kind_of(status: os.stat_result) -> str:
    """In words: `a directory`."""
    return next((words for check, words in KINDS if check(status.st_mode)), "something unknown")


def draft_of(path: Path) -> Path:
    """Where a file is prepared: a dot file beside it, which no watcher reads."""
    name = f".{path.name}.nodeup-draft"
    if len(os.fsencode(name)) > LONGEST_NAME:
        name = f".{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:32]}.nodeup-draft"
    return path.with_name(name)


def has_draft(path: Path) -> bool:
    """Whether a run that was killed left a draft of this path."""
    return seen_at(draft_of(path)) is not None


def remove_draft(path: Path) -> None:
    with about(path):
        draft_of(path).unlink(missing_ok=True)


def put_file(path: Path, content: bytes, rights: Rights) -> None:
    """Replace the file or link at a path, durably; missing directories above it are made, 0755 and ours.

    The caller has seen that nothing of another kind is there; a directory that appears meanwhile is not replaced.
    """
    with about(path):
        make_parents(path)
        draft = draft_of(path)
        draft.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                own(file.fileno(), rights)
                os.fsync(file.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        flush_folder(path.parent)


def put_link(path: Path, target: str) -> None:
    """Make or replace a symbolic link."""
    with about(path):
        make_parents(path)
        draft = draft_of(path)
        draft.unlink(missing_ok=True)
        try:
            draft.symlink_to(target)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        flush_folder(path.parent)


def put_directory(path: Path, rights: Rights) -> None:
    """Make a directory, or give an existing one these rights. It is private until it has its owner."""
    with about(path):
        make_parents(path)
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            pass
        else:
            flush_folder(path.parent)
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            own(handle, rights)
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_name(path: Path) -> None:
    """Remove a file or link; its absence is fine."""
    with about(path):
        try:
            path.unlink()
        except FileNotFoundError:
            return
        flush_folder(path.parent)


def own(handle: int, rights: Rights) -> None:
    """The owner first: the kernel takes setuid bits away from a file whose owner changes."""
    status = os.fstat(handle)
    if (status.st_uid, status.st_gid) != (rights.uid, rights.gid):
        os.fchown(handle, rights.uid, rights.gid)
    if stat.S_IMODE(os.fstat(handle).st_mode) != rights.mode:
        os.fchmod(handle, rights.mode)


def make_parents(path: Path) -> None:
    """Directories that no task declares: as `mkdir --parents` makes them, whatever the umask. Existing ones stay."""
    missing = []
    for parent in path.parents:
        if parent.is_dir():
            break
        missing.append(parent)
    for parent in reversed(missing):
        # mkdir's mode is cut by the umask, and a chmod afterwards might never come: whoever runs us sets the umask.
        parent.mkdir(mode=0o755, exist_ok=True)
        flush_folder(parent.parent)


@contextmanager
def about(path: Path) -> Iterator[None]:
    """Errors of the kernel name the path that was asked for, and not a draft, or nothing at all."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def refuse_kind(path: str, status: os.stat_result, want: str) -> Refused:
    """The error for something of another kind, which is never replaced."""
    return Refused(
        f"{path} is {kind_of(status)}, which is not replaced",
        saw=kind_of(status),
        want=want,
        hint="move it away if nobody needs it",
    )
