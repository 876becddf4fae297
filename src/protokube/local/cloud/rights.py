"""Remove access of other users to the state of a local cloud that an older version created too open.

The daemon does it before it opens the database. Folders that a host writes itself (etc, mnt, run, srv, var) are not
touched: a host could put a symbolic link there, and the folder around them is closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from protokube.local.base import private
from protokube.local.base.paths import Paths
from protokube.store.file import PRIVATE

SUFFIXES = ("", "-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite keeps for one database."""


def tighten(paths: Paths) -> Sequence[Path]:
    """Close private files to other users; return those that were open, relative to the folder of the cloud."""
    return [each.relative_to(paths.root) for each in _private(paths) if _exists(each) and private.close(each)]


def database_files(database: Path) -> Sequence[Path]:
    return [database.with_name(f"{database.name}{ending}") for ending in SUFFIXES]


def _private(paths: Paths) -> Iterator[Path]:
    """Every private path, folders before their content."""
    yield from (paths.root, paths.disks, paths.store, paths.hosts, paths.client, paths.images)
    yield from (*database_files(paths.database), paths.lock_file, paths.log, paths.pid_file, paths.admin_socket)
    yield from paths.disks.glob("*.img")
    yield from (*paths.client.glob("*.key"), paths.client / "kubeconfig")
    for host in paths.hosts.glob("*"):
        yield from (host, paths.host_socket(host.name), host / "log", *host.glob("log/*"))
    for folder in PRIVATE:
        for top in paths.store.glob(f"*/{folder}"):
            yield from (top, *top.rglob("*"))


def _exists(path: Path) -> bool:
    return path.exists() or path.is_symlink()
