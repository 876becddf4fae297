"""Which logs a host has, by the name of what writes them, and the files of each.

Units log to /var/log/UNIT.log. Pods: kubelet keeps NAMESPACE_POD-NODE_UID/CONTAINER/N.log, where N counts restarts, and
rotated ones beside them; the built-in pod runner NAMESPACE_POD/CONTAINER.log and one copy. Only pods of kube-system are
listed: those of users are for `kubectl logs`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from protokube.local.base.paths import Paths

AGENT, INIT, CLOUD, OUTSIDE = "agent", "init", "cloud", "outside"
UNITS = {"protokube": AGENT}
"""Units whose log has another name than the unit."""
NAMESPACE = "kube-system_"
ETCD_POD, ETCD = "etcd-server", "etcd"


class Place(NamedTuple):
    """Where a log lies: on a host, or, without one, beside the hosts."""

    host: str
    source: str


Logs = dict[str, list[Path]]
"""The files of each log, the oldest of them first."""


def logs_of_cloud(paths: Paths) -> Logs:
    return {name: [file] for name, file in ((CLOUD, paths.log), (OUTSIDE, paths.outside_log)) if file.is_file()}


def logs_of_host(folder: Path, host: str) -> Logs:
    """Empty for a host that never ran."""
    found: Logs = {}
    for file in _files(folder / "var/log"):
        name, dot, _ = file.name.partition(".log")
        if dot:
            unit = name.removesuffix(".service")
            found.setdefault(UNITS.get(unit, unit), []).append(file)
    if (first := folder / "log/init.log").is_file():
        found[INIT] = [first]
    for pod in _files(folder / "var/log/pods", folders=True):
        if pod.name.startswith(NAMESPACE):
            _add_pod(found, pod, host)
    return {source: sorted(files, key=_age) for source, files in sorted(found.items())}


def _add_pod(found: Logs, folder: Path, host: str) -> None:
    name = folder.name.removeprefix(NAMESPACE).partition("_")[0].removesuffix(f"-{host}")
    etcd = name.replace(ETCD_POD, ETCD, 1) if name == ETCD_POD or name.startswith(f"{ETCD_POD}-") else ""
    for file in _files(folder):
        container, dot, _ = file.name.partition(".log")
        if dot:
            found.setdefault(etcd or container, []).append(file)
    for inside in _files(folder, folders=True):
        files = [file for file in _files(inside) if ".log" in file.name and not file.name.endswith(".tmp")]
        if files:
            found.setdefault(etcd or inside.name, []).extend(files)


def _files(folder: Path, *, folders: bool = False) -> Iterator[Path]:
    with suppress(OSError), os.scandir(folder) as entries:  # gone, or not there yet
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) if folders else entry.is_file():
                yield folder / entry.name


def _age(file: Path) -> tuple[int, str]:
    try:
        return file.stat().st_mtime_ns, str(file)
    except OSError:
        return 0, str(file)
