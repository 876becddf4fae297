"""Read members out of a tar archive that may be compressed, in one pass, and refuse what an archive must not hold.

Nothing is extracted to where the archive says: a member is a stream, and whoever asked for it decides on path, mode and
owner. So links, devices and set-user-id bits of an archive never reach the disk. An archive with a member that leads
out of it is refused as a whole, since whoever made it meant harm or made a mistake.
"""

from __future__ import annotations

import lzma
import posixpath
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from protokube.errors import Refused

MOST_MEMBERS, LARGEST = 20_000, 1 << 33
"""Members of an archive, and bytes of all of them."""
FAULTS = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, UnicodeDecodeError)


class Content:
    """One member. Refused if the archive turns out to be damaged while it is read."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream, self._name = stream, name

    def read(self, count: int) -> bytes:
        try:
            return self._stream.read(count)
        except FAULTS as why:
            raise _damaged(self._name, why) from why


def files(archive: Path, name: str, member: str) -> Iterator[tuple[str, Content]]:
    """Base name and content of each selected file: one path, or all files of one folder for `bin/*`.

    Each has to be read before the next. Refused, at the latest at the end, if the archive is damaged or unsafe, if it
    has nothing of that name, or has it twice: whoever wrote what came first has to drop it then.
    """
    found: list[str] = []
    try:
        with tarfile.open(archive, "r|*") as tar:
            for entry in _checked(tar, name):
                path = posixpath.normpath(entry.name)
                if not _selected(path, member) or entry.isdir():
                    continue
                base = posixpath.basename(path)
                if not entry.isreg() or entry.issparse():
                    raise _unsafe(name, f"{path} is not a regular file")
                if base in found:
                    raise _unsafe(name, f"{path} is in it twice")
                found.append(base)
                content = tar.extractfile(entry)
                assert content is not None, path
                yield base, Content(content, name)
    except FAULTS as why:
        raise _damaged(name, why) from why
    if not found:
        raise Refused(f"{name} has no {member}", hint="check the path within the archive")


def _damaged(name: str, why: BaseException) -> Refused:
    return Refused(f"cannot unpack {name}", saw=str(why) or type(why).__name__, want="a whole tar archive")


def _selected(path: str, member: str) -> bool:
    folder, base = posixpath.split(posixpath.normpath(member))
    if base == "*":
        return posixpath.dirname(path) == folder
    return path == posixpath.normpath(member)


def _checked(tar: tarfile.TarFile, name: str) -> Iterator[tarfile.TarInfo]:
    """The members, as long as the archive is harmless."""
    size = 0
    for number, entry in enumerate(tar, 1):
        size += max(entry.size, 0)
        if number > MOST_MEMBERS or size > LARGEST:
            raise _unsafe(name, f"more than {MOST_MEMBERS} files or {LARGEST >> 30} GiB")
        if why := _leads_out(entry):
            raise _unsafe(name, why)
        if entry.isdev():
            raise _unsafe(name, f"{entry.name} is a device or a pipe")
        yield entry


def _leads_out(entry: tarfile.TarInfo) -> str:
    if _outside(entry.name):
        return f"{entry.name} leads out of it"
    target = entry.linkname
    if entry.issym():
        target = posixpath.join(posixpath.dirname(entry.name), target) if not target.startswith("/") else target
    if (entry.issym() or entry.islnk()) and _outside(target):
        return f"{entry.name} is a link to {entry.linkname}, out of it"
    return ""


def _outside(path: str) -> bool:
    normal = posixpath.normpath(path)
    return path.startswith("/") or "\0" in path or normal == ".." or normal.startswith("../")


def _unsafe(name: str, saw: str) -> Refused:
    return Refused(f"refusing to unpack {name}", saw=saw, want="files that stay in the archive")
