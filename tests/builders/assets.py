"""Assets of tests, archives with any members, and machines to install them on."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from protokube.nodeup.facts import Facts
from protokube.nodeup.machine import Commands, Machine, Ran, Say
from protokube.nodeup.values import Asset

DATA = b"#!/bin/sh\necho kubelet\n" * 9_000


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def an_asset(data: bytes = DATA, *urls: str, name: str = "kubelet", size: int | None = None) -> Asset:
    return Asset(name=name, sha256=sha256(data), urls=urls, size=size)


def a_file(path: Path, data: bytes = DATA, name: str = "kubelet") -> Asset:
    """Written, and as an asset with a file URL."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return an_asset(data, f"file://{path}", name=name, size=len(data))


def member(
    name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o755
) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode, entry.size = kind, link, mode, len(data)
    return entry, data


def an_archive(members: Sequence[tuple[tarfile.TarInfo, bytes]], mode: str = "w:gz") -> bytes:
    """The same members give the same bytes: gzip would note the time."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w" if mode == "w:gz" else mode) as tar:  # type: ignore[call-overload]
        for entry, data in members:
            tar.addfile(entry, io.BytesIO(data))
    return gzip.compress(whole.getvalue(), mtime=0) if mode == "w:gz" else whole.getvalue()


def of_files(files: Mapping[str, bytes], mode: str = "w:gz") -> bytes:
    return an_archive([member(name, data) for name, data in files.items()], mode)


def no_commands(
    words: Sequence[str], *, seconds: float = 0, environment: dict[str, str] | None = None, say: Say | None = None
) -> Ran:
    raise AssertionError(f"no command is run here: {words}")


def a_machine(root: Path, *assets: Asset, run: Commands = no_commands) -> Machine:
    """The root of an image in a folder of the test."""
    facts = Facts(distribution="debian", distribution_version="12")
    return Machine(facts=facts, run=run, root=root, assets={each.name: each for each in assets})


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file and link below a folder: its mode, inode and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_ino, content)
    return found
