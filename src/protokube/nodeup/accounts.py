"""Users and groups of the machine: looked up by name, and added to its files.

Entries are added as systemd-sysusers does it: under the lock that useradd and passwd take, each file replaced
atomically, /etc/passwd last. So it works alike in the root of an image, and a kill leaves either no user or a whole
one: what was written before is taken up by the next run. No existing entry is ever changed.
"""

from __future__ import annotations

import fcntl
import grp
import os
import pwd
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from protokube.errors import Refused, TryLater
from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine
from protokube.nodeup.placing import Rights, about, put_file

PASSWD, GROUP, SHADOW, GSHADOW = "/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"
LOCK = "/etc/.pwd.lock"
SECONDS_FOR_LOCK = 15.0
SYSTEM_IDS = range(999, 99, -1)
"""Ids for users and groups of the system; the highest free one is taken, as useradd does."""
_ours = threading.Lock()
"""The lock of the files belongs to the whole process."""


def entries(machine: Machine, file: str) -> list[list[str]]:
    """The lines of passwd, group or shadow, as fields."""
    path = machine.resolved(file)
    with about(path):
        try:
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
        except FileNotFoundError:
            return []
    return [line.split(":") for line in text.splitlines() if line and line[0] not in "#+-"]


def find(machine: Machine, file: str, name: str) -> list[str] | None:
    """The entry of a user or group in this file."""
    return next((fields for fields in entries(machine, file) if fields[0] == name), None)


def user(machine: Machine, name: str) -> list[str] | None:
    """The entry of a user, also of a directory service: one of our own would hide theirs."""
    fields = find(machine, PASSWD, name)
    if fields is None and machine.boots:
        with suppress(KeyError):
            return [str(each) for each in pwd.getpwnam(name)]
    return fields


def uid_of(machine: Machine, name: str) -> int | None:
    """The id of a user, or the number itself; None if there is no such user."""
    if name == "root" or name.isdecimal():
        return int(name) if name.isdecimal() else 0
    if (fields := find(machine, PASSWD, name)) is not None:
        return number(PASSWD, fields)
    if machine.boots:
        with suppress(KeyError):
            return pwd.getpwnam(name).pw_uid  # of a directory service
    return None


def gid_of(machine: Machine, name: str) -> int | None:
    """The id of a group, or the number itself; None if there is no such group."""
    if name == "root" or name.isdecimal():
        return int(name) if name.isdecimal() else 0
    if (fields := find(machine, GROUP, name)) is not None:
        return number(GROUP, fields)
    if machine.boots:
        with suppress(KeyError):
            return grp.getgrnam(name).gr_gid
    return None


def ids(machine: Machine, owner: str, group: str) -> tuple[int, int]:
    """Ids of an owner and a group; Refused if there is no such one."""
    uid, gid = uid_of(machine, owner), gid_of(machine, group)
    if uid is None:
        raise Refused(f"there is no user {owner} on this machine", hint="a User task or a package makes it")
    if gid is None:
        raise Refused(f"there is no group {group} on this machine", hint="a Group task or a package makes it")
    return uid, gid


def rights_differ(status: os.stat_result, mode: int, owner: str, group: str, machine: Machine) -> tuple[Change, ...]:
    """What differs in mode and owner. An owner that does not exist yet differs, too."""
    changes = []
    if (seen := stat.S_IMODE(status.st_mode)) != mode:
        changes.append(Change("mode", f"{seen:#o}", f"{mode:#o}"))
    if status.st_uid != uid_of(machine, owner):
        changes.append(Change("owner", str(status.st_uid), owner))
    if status.st_gid != gid_of(machine, group):
        changes.append(Change("group", str(status.st_gid), group))
    return tuple(changes)


def add(machine: Machine, file: str, fields: Sequence[str]) -> None:
    """Add one entry, with the rights that the file has; before lines of NIS, which end it."""
    if wrong := [each for each in fields if set(each) & {":", "\n", "\0"}]:
        raise Refused(f"{wrong[0]!r} cannot be part of an entry in {file}", hint="leave out colons and line ends")
    path = machine.resolved(file)
    with about(path):
        status = path.stat()
        lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    at = next((number for number, line in enumerate(lines) if line[:1] in ("+", "-")), len(lines))
    text = "".join(f"{line}\n" for line in (*lines[:at], ":".join(fields), *lines[at:]))
    put_file(
        path,
        text.encode("utf-8", errors="surrogateescape"),
        Rights(stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid),
    )


def exists(machine: Machine, file: str) -> bool:
    return machine.resolved(file).is_file()


def free_id(machine: Machine, *wanted: int | None) -> int:
    """The first of these that is free as a user and as a group, else the highest free one of the system."""
    used = {number(file, fields) for file in (PASSWD, GROUP) for fields in entries(machine, file)}
    candidates: list[int] = [each for each in wanted if each is not None]
    candidates += SYSTEM_IDS
    free = next((each for each in candidates if each not in used), None)
    if free is not None:
        return free
    raise Refused("no id is free for another user", want=f"one below {SYSTEM_IDS[0] + 1}", hint="remove old users")


def name_of(machine: Machine, file: str, wanted: int) -> str | None:
    """Who has this id already."""
    return next((fields[0] for fields in entries(machine, file) if number(file, fields) == wanted), None)


@contextmanager
def locked(machine: Machine, seconds: float = SECONDS_FOR_LOCK) -> Iterator[None]:
    """Hold the lock of the files; TryLater if somebody else does for longer."""
    path = machine.resolved(LOCK)
    with _ours, about(path):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            _wait_for(handle, path, time.monotonic() + seconds)
            yield
        finally:
            os.close(handle)


def _wait_for(handle: int, path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as taken:
            if time.monotonic() > deadline:
                raise TryLater(
                    "another program changes users or groups of this machine", saw=f"{path} is locked",
                    hint=f"`fuser {path}` shows which one",
                ) from taken  # fmt: skip
            time.sleep(0.05)
        else:
            return


def number(file: str, fields: Sequence[str], place: int = 2) -> int:
    """A number in an entry, usually its id; Refused if there is none."""
    try:
        return int(fields[place])
    except (IndexError, ValueError):
        raise Refused(
            f"{file} has an entry that is none", saw=f"the entry of {fields[0]}", hint="`pwck` and `grpck` repair it"
        ) from None
