"""One version of protokube itself: its file, the links that put it to use, and which earlier ones stay.

Each step is atomic, and in an order in which a kill leaves the old or the new version in use: the file first, then the
link to the former version, then the one that switches.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from protokube.errors import Refused
from protokube.host.files import flush_folder
from protokube.images.reading import Hashed
from protokube.nodeup import selfinstall
from protokube.nodeup.assets import placing
from protokube.nodeup.assets.records import Record, digest_of, owner_is_ours, read_record, stamp, write_record
from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.selfinstall import COMMAND, CURRENT, FORMER, HOME, PROGRAM, TARGET, Installed
from protokube.nodeup.values import Version

MODE = 0o755


def look(wanted: Version, machine: Machine) -> tuple[Change, ...]:
    """Whether this version is there and in use, and no other than it and the former one."""
    found, changes = _found(machine), list[Change]()
    if why := _why_not_installed(wanted, machine):
        changes.append(Change("installed", why, f"sha256 {wanted.sha256}"))
    if found.current != wanted.name:
        changes.append(Change("version", found.current or "none", wanted.name))
    if (saw := _command(machine)) != TARGET:
        changes.append(Change(COMMAND, saw or "nothing", f"a link to {TARGET}"))
    if not changes and (old := _superfluous(found, wanted, machine)):
        changes.append(Change("former versions", ", ".join(old), "removed"))
    return tuple(changes)


def apply(wanted: Version, changes: Sequence[Change], machine: Machine, say: Say) -> None:  # noqa: ARG001
    """Install it, switch to it, and remove what is older than the former version."""
    place = _place(wanted.name)
    if _why_not_installed(wanted, machine):
        say(f"protokube {wanted.name} is installed")
        _install(wanted, machine)
    files = {place: stamp(machine.path(place), wanted.sha256)}
    write_record(machine, Record(key=_key(wanted), source=wanted.sha256, files=files, notes={}))
    found = _found(machine)
    if found.current not in ("", wanted.name) and found.current in found.versions:
        _link(machine, f"{HOME}/{FORMER}", found.current)
    _link(machine, f"{HOME}/{CURRENT}", wanted.name)
    _command(machine)
    _link(machine, COMMAND, TARGET)
    for name in _superfluous(_found(machine), wanted, machine):
        say(f"protokube {name} is removed")
        _remove(machine.path(f"{HOME}/{name}"))


def _place(name: str) -> str:
    return f"{HOME}/{name}/{PROGRAM}"


def _key(wanted: Version) -> str:
    return f"version {wanted.name}"


def _why_not_installed(wanted: Version, machine: Machine) -> str:
    place = _place(wanted.name)
    path, record = machine.path(place), read_record(machine, _key(wanted))
    sha256 = digest_of(path, record.files.get(place) if record else None)
    if sha256 != wanted.sha256:
        return f"sha256 {sha256}" if sha256 else "nothing"
    status = path.stat()
    if stat.S_IMODE(status.st_mode) != MODE or not owner_is_ours(status):
        return f"mode {stat.S_IMODE(status.st_mode):04o}, owner {status.st_uid}"
    return ""


def _install(wanted: Version, machine: Machine) -> None:
    path = machine.path(_place(wanted.name))
    try:
        with Path(wanted.source).open("rb") as file:
            content = Hashed(file)
            placing.write_draft(path, content.read, MODE)
    except OSError as why:
        raise Refused(f"cannot read {wanted.source}", saw=why.strerror or str(why)) from why
    if content.sha256 != wanted.sha256:
        placing.drop(path)
        saw = f"sha256 {content.sha256}"
        raise Refused(f"{wanted.source} is not the file to install", saw=saw, want=f"sha256 {wanted.sha256}")
    placing.finish(path)


def _found(machine: Machine) -> Installed:
    home = machine.path(HOME)
    try:
        names = [each.name for each in home.iterdir() if each.is_dir() and not each.is_symlink()]
    except FileNotFoundError:
        names = []
    versions = frozenset(name for name in names if selfinstall.NAME.fullmatch(name))
    return Installed(versions=versions, current=_target(home / CURRENT), former=_target(home / FORMER))


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def _command(machine: Machine) -> str:
    """Where the command leads now; Refused if something is there that is not ours."""
    path = machine.path(COMMAND)
    target = _target(path)
    if not target and os.path.lexists(path):
        raise Refused(f"{COMMAND} is not a link of ours", want=f"a link to {TARGET}", hint="move it away")
    if target and not target.startswith(f"{HOME}/"):
        raise Refused(f"{COMMAND} leads to {target}", want=f"a link to {TARGET}", hint="move it away")
    return target


def _superfluous(found: Installed, wanted: Version, machine: Machine) -> tuple[str, ...]:
    if not found.versions - {wanted.name, found.current, found.former}:
        return ()  # then processes need not be looked at
    changed = machine.path(f"{HOME}/{CURRENT}")
    at = changed.lstat().st_mtime if changed.is_symlink() else 0.0
    runs = selfinstall.running(at) if machine.boots else frozenset[str]()
    return selfinstall.superfluous(found, wanted.name, runs)


def _link(machine: Machine, path: str, target: str) -> None:
    place = machine.path(path)
    if _target(place) == target:
        return
    draft = placing.draft_of(place)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)
        draft.symlink_to(target)
        draft.replace(place)
        flush_folder(place.parent)
    except OSError as why:
        raise placing.refusal(place, why) from why


def _remove(folder: Path) -> None:
    """Remove what we put there; a directory with anything else in it stays."""
    placing.drop(folder / PROGRAM)
    (folder / PROGRAM).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
