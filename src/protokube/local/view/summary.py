"""A summary of each local cluster, for a list: quick, whatever state a cluster is in.

From the daemon, which gets a second, and from files. Nothing here raises: a cluster that cannot be read is listed with
the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protokube.errors import ProtokubeError
from protokube.local.base.paths import MARK, Paths
from protokube.providers.clients.local import LocalClient

PATIENCE = 1.0
"""Seconds for the daemon of one cluster; all are asked at the same time."""
MOST_AT_ONCE = 16
RUNNING, STARTING, STOPPED, DOWN, INCOMPLETE, UNREADABLE = (
    "running", "starting", "stopped", "not running", "incomplete", "not readable",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One cluster in the list."""

    name: str
    folder: Path
    state: str
    why: str = ""
    masters: int | None = None
    kubernetes: str = ""
    etcd: str = ""
    made: float | None = None
    """When its first `up` began, in seconds since 1970."""


def summaries(names: Sequence[str]) -> list[Summary]:
    """In the order of the names."""
    if not names:
        return []
    with ThreadPoolExecutor(min(len(names), MOST_AT_ONCE)) as pool:
        return list(pool.map(summary, names))


def summary(name: str) -> Summary:
    paths = Paths.of(name)
    try:
        made = (paths.root / MARK).stat().st_mtime
        masters, kubernetes, etcd = _configuration(paths)
        state, why = _state(paths, brought_up=bool(etcd))
    except PermissionError:
        return Summary(name=name, folder=paths.root, state=UNREADABLE, why="it belongs to another user; use sudo")
    except OSError as error:
        return Summary(name=name, folder=paths.root, state=UNREADABLE, why=error.strerror or str(error))
    return Summary(
        name=name, folder=paths.root, state=state, why=why, masters=masters, kubernetes=kubernetes, etcd=etcd, made=made
    )


def _state(paths: Paths, *, brought_up: bool) -> tuple[str, str]:
    """The state in a word, and what the word leaves open."""
    if paths.removing.exists():
        return INCOMPLETE, f"it was not removed completely: `protokube down --cluster {paths.cluster}` completes it"
    answer = _hosts(paths) if paths.admin_socket.exists() else None
    if answer is None and paths.stopped.exists():
        return STOPPED, ""
    if not brought_up:
        return INCOMPLETE, f"`protokube up --cluster {paths.cluster}` completes it"
    if answer is None:
        return DOWN, f"`protokube start --cluster {paths.cluster}` starts it"
    if isinstance(answer, str):
        return "unknown", answer
    away = [str(each["name"]) for each in answer if not each["running"]]
    if not answer or away:
        return STARTING, f"{', '.join(away)} not up yet" if away else "no host is up yet"
    return RUNNING, ""


def _hosts(paths: Paths) -> list[dict[str, Any]] | str | None:
    """What the daemon says; None if none runs, and why if it does not answer."""
    try:
        hosts: list[dict[str, Any]] = LocalClient(paths.admin_socket, patience=PATIENCE).call("hosts")
        return [each for each in hosts if not each["dead"]]
    except ProtokubeError as why:
        if isinstance(why.__cause__, PermissionError):
            raise why.__cause__ from None
        if isinstance(why.__cause__, TimeoutError):
            return "the local cloud does not answer"
        return None


def _configuration(paths: Paths) -> tuple[int | None, str, str]:
    """Masters, Kubernetes and etcd of the revision in force; nothing where there is none yet, or it is damaged."""
    from protokube.launch.revisions import in_force
    from protokube.store.file import FileStore

    if not paths.store.is_dir():
        return None, "", ""
    try:
        found = in_force(FileStore(paths.store), paths.cluster)
    except ProtokubeError as why:
        if isinstance(why.__cause__, PermissionError):
            raise why.__cause__ from None
        return None, "", ""
    if found is None:
        return None, "", ""
    revision = found[1]
    groups = {member.group or "masters" for etcd in revision.master.etcd for member in etcd.members}
    return len(groups), revision.kubernetes, revision.etcd
