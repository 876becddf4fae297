"""Read an image archive: its files, the digest of each, and the digest of the archive.

One streaming pass, because an archive may be compressed and larger than memory. Only possible JSON files are kept in
memory.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from protokube.images.contents import Contents, ImageProblem, Member

GZIP, ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
COMPRESSIONS = {ZSTANDARD: "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
"""Formats that Python 3.11 or containerd cannot read."""
LARGEST_JSON = 4 * 1024 * 1024
"""Bytes; containerd accepts no larger manifest."""
CHUNK = 1024 * 1024
FAULTS = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError)


class Hashed:
    """A stream that counts and hashes what is read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._digest, self.size = stream, hashlib.sha256(), 0

    def read(self, count: int = CHUNK) -> bytes:
        data = self._stream.read(count)
        self._digest.update(data)
        self.size += len(data)
        return data

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


@contextmanager
def uncompressed(file: Path) -> Iterator[IO[bytes]]:
    """Open an archive, decompressed. ImageProblem if its compression is not supported."""
    with file.open("rb") as plain:
        head = plain.read(8)
        plain.seek(0)
        for magic, name in COMPRESSIONS.items():
            if head.startswith(magic):
                raise ImageProblem(f"compressed by {name}; decompress it first, or use gzip")
        if head.startswith(GZIP):
            with gzip.GzipFile(fileobj=plain) as stream:
                yield stream  # type: ignore[misc]  # it reads as any other
        else:
            yield plain


def read_archive(file: Path) -> Contents:
    """Read an archive. ImageProblem if it is not a tar archive, or is truncated."""
    try:
        with uncompressed(file) as stream:
            return _read(Hashed(stream))
    except FAULTS as why:
        raise ImageProblem(f"not an archive, or not a whole one: {why}") from why
    except OSError as why:
        raise ImageProblem(f"cannot be read: {why.strerror or why}") from why


def _read(stream: Hashed) -> Contents:
    members: dict[str, Member] = {}
    links: dict[str, str] = {}
    with tarfile.open(fileobj=stream, mode="r|", bufsize=CHUNK) as tar:  # type: ignore[call-overload]  # it only reads
        for entry in tar:
            path = os.path.normpath(entry.name)
            if entry.issym() or entry.islnk():
                links[path] = entry.linkname if entry.issym() else os.path.relpath(entry.linkname, Path(path).parent)
            elif entry.isreg() and (opened := tar.extractfile(entry)):
                members[path] = _read_member(opened, entry.size)
    while stream.read():
        pass
    return Contents(sha256=stream.sha256, size=stream.size, members=members, links=links)


def _read_member(opened: IO[bytes], size: int) -> Member:
    content = Hashed(opened)
    head = content.read()
    held = bytearray(head) if size <= LARGEST_JSON else None
    while data := content.read():
        if held is not None:
            held += data
    if content.size != size:
        raise EOFError(f"it ends after {content.size} of {size} bytes of a file in it")
    is_json = held is not None and head[:1] in b"{[ \n"
    return Member(
        size, content.sha256, bytes(held) if is_json and held else None, compressed=head.startswith((GZIP, ZSTANDARD))
    )
