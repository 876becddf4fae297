"""Files of units below a root: what differs, writing them, and the links that enable a unit in an image."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from protokube.errors import Refused
from protokube.host.files import holds, remove
from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine
from protokube.nodeup.placing import Rights, has_draft, put_file, put_link, remove_draft
from protokube.nodeup.units import install
from protokube.nodeup.units.names import checked
from protokube.nodeup.values import Unit

FOLDER = "/etc/systemd/system"
SEARCHED = (FOLDER, "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
MODE = 0o644


def wanted_files(wanted: Unit) -> dict[str, bytes]:
    """Content by path."""
    name = checked(wanted.name)
    found = {} if wanted.content is None else {f"{FOLDER}/{name}": wanted.content.encode()}
    for drop_in, content in sorted(wanted.drop_ins.items()):
        if "/" in drop_in or not drop_in.endswith(".conf") or drop_in.startswith("."):
            raise Refused(f"{drop_in!r} is no name of a drop-in", want="a file name that ends in .conf")
        found[f"{FOLDER}/{name}.d/{drop_in}"] = content.encode()
    return found


def differing(wanted: Unit, machine: Machine) -> Iterator[Change]:
    """What differs between its files and those on disk. Refused where a link or a folder is in the way."""
    refuse_masked(wanted.name, machine)
    for inside, content in wanted_files(wanted).items():
        path = machine.path(inside)
        status = lstat(path)
        if status is not None and has_draft(path):
            yield Change(f"{inside} draft", "left by a run that was killed", "none")
        if status is None:
            yield Change(inside, "missing", "written")
        elif not stat.S_ISREG(status.st_mode):
            kind = f"a link to {path.readlink()}" if stat.S_ISLNK(status.st_mode) else "no regular file"
            raise Refused(f"{inside} is not ours to write", saw=kind, want="a file, or nothing there")
        elif not holds(path, content, stat.S_IMODE(status.st_mode)):
            yield Change(inside, "other content", "as wanted")
        elif stat.S_IMODE(status.st_mode) != MODE:
            yield Change(f"{inside} mode", f"{stat.S_IMODE(status.st_mode):o}", f"{MODE:o}")


def refuse_masked(name: str, machine: Machine) -> None:
    """A person masks a unit so that nothing starts it."""
    for folder in (FOLDER, "/run/systemd/system"):
        path = machine.path(f"{folder}/{name}")
        if path.is_symlink() and str(path.readlink()) == "/dev/null":
            raise masked(name, f"{folder}/{name} is a link to /dev/null")


def masked(name: str, saw: str) -> Refused:
    return Refused(f"{name} is masked", saw=saw, hint=f"`systemctl unmask {name}` lets nodeup manage it")


def write(wanted: Unit, machine: Machine) -> bool:
    """Write what differs; return whether anything did."""
    changed = False
    for inside, content in wanted_files(wanted).items():
        path = machine.path(inside)
        if holds(path, content, MODE):
            remove_draft(path)
        else:
            put_file(path, content, Rights(MODE))
            changed = True
    return changed


def changed_at(wanted: Unit, machine: Machine) -> float:
    """When the last of its files was written, by the wall clock; 0 if it has none."""
    found = [lstat(machine.path(inside)) for inside in wanted_files(wanted)]
    return max((status.st_mtime for status in found if status), default=0.0)


def settle_times(wanted: Unit, machine: Machine) -> None:
    """Files written while the clock was ahead would ask for a restart in every run, until it gets there."""
    for inside in wanted_files(wanted):
        path = machine.path(inside)
        status = lstat(path)
        if status and status.st_mtime > time.time():
            os.utime(path, follow_symlinks=False)


def of_others(wanted: Unit, machine: Machine) -> Iterator[Change]:
    """Files that are neither root's nor ours: whoever owns one decides what root runs."""
    for inside in wanted_files(wanted):
        status = lstat(machine.path(inside))
        if status is None or not stat.S_ISREG(status.st_mode):
            continue
        if status.st_uid not in (0, os.geteuid()) or status.st_gid not in (0, os.getegid()):
            yield Change(f"{inside} owner", f"{status.st_uid}:{status.st_gid}", "0:0")


def give_to_root(wanted: Unit, machine: Machine) -> None:
    for change in of_others(wanted, machine):
        os.chown(machine.path(change.what.removesuffix(" owner")), 0, 0, follow_symlinks=False)


def lstat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def unit_file(name: str, machine: Machine) -> str | None:
    """Where the file of a unit lies, as a path of the machine."""
    return next((f"{each}/{name}" for each in SEARCHED if lstat(machine.path(f"{each}/{name}"))), None)


def links(wanted: Unit, machine: Machine) -> dict[str, str]:
    """The links that enable it in an image: target by path. Its own content counts before its file is written."""
    found: dict[str, str] = {}
    waiting, seen = [wanted.name], set[str]()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        target = unit_file(name, machine)
        if target is None and name == wanted.name and wanted.content is not None:
            target = f"{FOLDER}/{name}"
        if target is None:
            continue
        section = install.read(name, contents(name, target, wanted, machine))
        found |= {f"{FOLDER}/{each}": target for each in section.links}
        waiting += [each for each in section.also if each not in seen]
    return found


def contents(name: str, target: str, wanted: Unit, machine: Machine) -> list[str]:
    drop_ins = list(wanted.drop_ins.values()) if name == wanted.name else []
    if name == wanted.name and wanted.content is not None:
        return [wanted.content, *drop_ins]
    return [machine.path(target).read_text(errors="replace"), *drop_ins]


def is_enabled(wanted: Unit, machine: Machine) -> bool:
    """In an image: whether all its links are there, or for `enabled=False` any of them."""
    there = [lstat(machine.path(path)) is not None for path in links(wanted, machine)]
    return all(there) and bool(there) if wanted.enabled else any(there)


def enable(wanted: Unit, machine: Machine) -> None:
    """Make or remove the links, in an image."""
    asked = links(wanted, machine)
    if wanted.enabled and not asked:
        raise not_enableable(wanted.name)
    for inside, target in asked.items():
        path = machine.path(inside)
        if not wanted.enabled:
            remove(path)
            continue
        put_link(path, target)


def not_enableable(name: str) -> Refused:
    return Refused(
        f"{name} cannot be enabled: nothing says when it starts",
        saw="no [Install] section in its file, or no file",
        want="WantedBy= or RequiredBy= in [Install]",
    )
