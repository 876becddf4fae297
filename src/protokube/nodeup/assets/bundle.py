"""An offline bundle: one reproducible tar with an index and the assets that a machine needs, named by their digests.

The index tells what should be there, so that a bundle that was cut short or changed on its way is refused before
anything is taken out of it. It proves nothing about the assets themselves: their digests come from the setup of the
machine, and each is compared when it is copied.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from protokube.errors import Refused
from protokube.host.files import draft, flush_folder
from protokube.images.reading import Hashed
from protokube.nodeup.values import Asset, Task

INDEX, FOLDER, VERSION = "index.json", "assets/", 1
LARGEST_INDEX = 1 << 20
BLOCK, END = 512, 1024
"""Of tar: the unit of its members, and its end."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One asset in a bundle."""

    name: str
    sha256: str
    size: int
    offset: int = 0
    """Where its first byte is in the bundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle whose index fits its members."""

    path: Path
    about: str
    """For whom it was made: cluster, role, version, processor."""
    entries: tuple[Entry, ...]


def write_bundle(target: Path, assets: Sequence[tuple[Asset, Path]], about: str, say: Say) -> Bundle:
    """Write these files as a bundle, all at once; the same files give the same bytes. Refused if one is wrong."""
    files = {asset.sha256: path for asset, path in assets}
    entries = sorted(
        (Entry(name=asset.name, sha256=asset.sha256, size=path.stat().st_size) for asset, path in assets),
        key=lambda each: (each.name, each.sha256),
    )
    described = [{"name": each.name, "sha256": each.sha256, "size": each.size} for each in entries]
    index = json.dumps({"version": VERSION, "about": about, "assets": described}, indent=2, sort_keys=True) + "\n"
    try:
        with draft(target, None) as unfinished:
            with tarfile.open(unfinished, "w", format=tarfile.PAX_FORMAT) as tar:
                tar.addfile(_header(INDEX, len(index.encode())), io.BytesIO(index.encode()))
                for sha256 in sorted(files):
                    names = ", ".join(each.name for each in entries if each.sha256 == sha256)
                    say(f"{names} is added")
                    _add(tar, sha256, files[sha256], names)
            _flushed(unfinished)
            unfinished.replace(target)
        flush_folder(target.parent)
    except OSError as why:
        raise Refused(f"cannot write {target}", saw=why.strerror or str(why), code="output") from why
    return open_bundle(target)


def open_bundle(path: Path) -> Bundle:
    """Read the index, and compare it with the members. Refused if it is none, was cut short or was changed."""
    try:
        length = path.stat().st_size
        with tarfile.open(path, "r:") as tar:
            members = tar.getmembers()
            first = tar.extractfile(members[0]) if members and members[0].size <= LARGEST_INDEX else None
            if first is None or members[0].name != INDEX:
                raise _unusable(path, f"its first member is {members[0].name if members else 'missing'}, not {INDEX}")
            index = first.read()
    except FileNotFoundError as why:
        raise Refused(f"there is no bundle {path}") from why
    except OSError as why:
        raise Refused(f"cannot read the bundle {path}", saw=why.strerror or str(why)) from why
    except tarfile.TarError as why:
        raise _unusable(path, f"{why}, in {length} bytes") from why
    about, wanted = _parse(path, index)
    _check_members(path, wanted, members[1:])
    last = members[-1]
    end = last.offset_data + -(-last.size // BLOCK) * BLOCK + END
    if length != (whole := -(-end // tarfile.RECORDSIZE) * tarfile.RECORDSIZE):
        raise _unusable(path, f"it has {length} of {whole} bytes")
    places = {member.name: member.offset_data for member in members}
    found = tuple(replace(each, offset=places[f"{FOLDER}{each.sha256}"]) for each in wanted)
    return Bundle(path=path, about=about, entries=found)


def verify(bundle: Bundle, say: Say) -> None:
    """Compare the content of every asset with the index. Refused with all that are wrong."""
    wrong = []
    with bundle.path.open("rb") as file:
        for each in bundle.entries:
            say(f"{each.name} is read")
            content = Hashed(file)
            file.seek(each.offset)
            while content.size < each.size and content.read(min(1 << 20, each.size - content.size)):
                pass
            if content.sha256 != each.sha256:
                wrong.append(f"the sha256 of {each.name} is {content.sha256}, and not {each.sha256}")
    if wrong:
        raise _unusable(bundle.path, "; ".join(wrong))


def locate(path: Path, member: str) -> tuple[int, int]:
    """Where an asset is in a bundle, and its size."""
    bundle = open_bundle(path)
    for each in bundle.entries:
        if f"{FOLDER}{each.sha256}" == member:
            return each.offset, each.size
    raise _unusable(path, f"there is no {member} in it any more")


def first(tasks: Iterable[Task], bundle: Bundle) -> tuple[Task, ...]:
    """The tasks, with the bundle as the first source of each asset that it has."""
    there = {each.sha256 for each in bundle.entries}
    base = f"file://{quote(str(bundle.path.absolute()))}#{FOLDER}"
    return tuple(
        replace(each, urls=(f"{base}{each.sha256}", *each.urls))
        if isinstance(each, Asset) and each.sha256 in there
        else each
        for each in tasks
    )


def _header(name: str, size: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size, header.mode = size, 0o644
    return header


def _add(tar: tarfile.TarFile, sha256: str, path: Path, names: str) -> None:
    with path.open("rb") as file:
        content = Hashed(file)
        tar.addfile(_header(f"{FOLDER}{sha256}", path.stat().st_size), content)
    if content.sha256 != sha256:
        raise Refused(f"{names} changed meanwhile", saw=f"sha256 {content.sha256} of {path}", want=f"sha256 {sha256}")


def _flushed(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _parse(path: Path, index: bytes) -> tuple[str, tuple[Entry, ...]]:
    try:
        tree: Any = json.loads(index)
    except ValueError as why:
        raise _unusable(path, f"{INDEX} in it is not JSON") from why
    match tree:
        case {"version": 1, "about": str(about), "assets": [*rows]}:
            return about, tuple(_entry(path, row) for row in rows)
        case {"version": int(version)} if version != VERSION:
            raise Refused(f"{path} is a bundle of version {version}", want=f"version {VERSION}", hint="make it anew")
    raise _unusable(path, f"{INDEX} in it is not an index of a bundle")


def _entry(path: Path, row: Any) -> Entry:
    match row:
        case {"name": str(name), "sha256": str(sha256), "size": int(size)} if len(sha256) == 64 and size >= 0:
            return Entry(name=name, sha256=sha256, size=size)
    raise _unusable(path, f"{INDEX} in it has an entry without name, sha256 or size")


def _check_members(path: Path, wanted: Sequence[Entry], members: Sequence[tarfile.TarInfo]) -> None:
    sizes = {f"{FOLDER}{each.sha256}": each.size for each in wanted}
    there = {member.name: member for member in members}
    if len(there) < len(members) or not all(member.isreg() for member in members):
        raise _unusable(path, "it has a member twice, or one that is not a file")
    for each in wanted:
        if f"{FOLDER}{each.sha256}" not in there:
            raise _unusable(path, f"{each.name} of its index is not in it")
    for name, member in there.items():
        if name not in sizes:
            raise _unusable(path, f"{name} in it is not in its index")
        if member.size != sizes[name]:
            raise _unusable(path, f"{name} in it has {member.size} bytes, and {sizes[name]} in its index")


def _unusable(path: Path, saw: str) -> Refused:
    return Refused(f"{path} is not a whole bundle", saw=saw, hint="copy it again, or make it anew: `protokube bundle`")
