"""Programs out of an asset: the asset itself, or members of an archive.

What is hard is to know cheaply what is installed: the digests of members are known only once the archive was read.
They are recorded when they are installed, and what is there is compared with the record. Without one the archive is
read again, and a file that is right already is left as it is.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Sequence
from typing import IO

from protokube.errors import Refused
from protokube.nodeup.assets import cache, placing, unpack
from protokube.nodeup.assets.records import (
    Record,
    Stamp,
    digest_of,
    owner_is_ours,
    read_record,
    stamp,
    write_record,
)
from protokube.nodeup.assets.unpack import Content
from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.values import Installed

SET_BITS = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX


def look(wanted: Installed, machine: Machine) -> tuple[Change, ...]:
    """What differs from the members of the asset."""
    if wanted.mode & SET_BITS:
        raise Refused(f"{wanted.path} would run as another user", saw=f"mode {wanted.mode:o}", want="0755 or less")
    asset = cache.named(machine, wanted.asset)
    record = _record(wanted, machine)
    if wanted.member and record is None:
        there = "nothing" if not machine.path(wanted.path).exists() else "files of unknown origin"
        return (Change("installed", there, f"{wanted.member} of {wanted.asset}, sha256 {asset.sha256}"),)
    known = record.files if record else {}
    digests = {path: each.sha256 for path, each in known.items()} if wanted.member else {wanted.path: asset.sha256}
    return tuple(
        change
        for path, sha256 in digests.items()
        for change in _differs(path, sha256, known.get(path), wanted, machine)
    )


def apply(wanted: Installed, changes: Sequence[Change], machine: Machine, say: Say) -> None:  # noqa: ARG001
    """Write every file that differs, each at once, and then the record."""
    asset = cache.named(machine, wanted.asset)
    archive = cache.obtain(machine, asset, say)
    drafts: dict[str, str] = {}
    try:
        with archive.open("rb") as whole:
            if not wanted.member:
                _draft(wanted.path, whole, wanted, machine, drafts)
                if (came := drafts[wanted.path]) != asset.sha256:
                    raise Refused(
                        f"{asset.name} changed meanwhile", saw=f"sha256 {came}", want=f"sha256 {asset.sha256}"
                    )
            else:
                for name, content in unpack.files(archive, wanted.asset, wanted.member):
                    say(f"{name} of {wanted.asset}")
                    _draft(_target(wanted, name), content, wanted, machine, drafts)
        stamps = {path: _place(path, sha256, wanted, machine) for path, sha256 in sorted(drafts.items())}
    finally:
        for path in drafts:
            placing.drop(machine.path(path))
    write_record(machine, Record(key=wanted.key, source=_source(wanted, machine), files=stamps, notes={}))


def _target(wanted: Installed, name: str) -> str:
    return f"{wanted.path.rstrip('/')}/{name}" if wanted.member.endswith("*") else wanted.path


def _source(wanted: Installed, machine: Machine) -> str:
    return f"{cache.named(machine, wanted.asset).sha256} {wanted.member}".strip()


def _record(wanted: Installed, machine: Machine) -> Record | None:
    record = read_record(machine, wanted.key)
    return record if record and record.source == _source(wanted, machine) else None


def _differs(path: str, sha256: str, known: Stamp | None, wanted: Installed, machine: Machine) -> list[Change]:
    place = machine.path(path)
    saw = digest_of(place, known)
    if saw != sha256:
        there = f"sha256 {saw}" if saw else "no file"
        return [Change(f"content of {path}", there, f"sha256 {sha256}")]
    status = place.stat()
    mode = stat.S_IMODE(status.st_mode)
    changes = [Change(f"mode of {path}", f"{mode:04o}", f"{wanted.mode:04o}")] if mode != wanted.mode else []
    if not owner_is_ours(status):
        changes.append(Change(f"owner of {path}", f"{status.st_uid}:{status.st_gid}", "0:0"))
    return changes


def _draft(
    path: str, content: IO[bytes] | Content, wanted: Installed, machine: Machine, drafts: dict[str, str]
) -> None:
    sha256 = hashlib.sha256()

    def read(count: int) -> bytes:
        data = content.read(count)
        sha256.update(data)
        return data

    drafts[path] = ""
    placing.write_draft(machine.path(path), read, wanted.mode)
    drafts[path] = sha256.hexdigest()


def _place(path: str, sha256: str, wanted: Installed, machine: Machine) -> Stamp:
    place = machine.path(path)
    if _differs(path, sha256, None, wanted, machine):
        placing.finish(place)
    return stamp(place, sha256)
