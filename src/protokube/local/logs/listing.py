"""Which logs a cluster has: the sources by name, and a list with the time of the last line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from protokube.local.base.paths import Paths
from protokube.local.logs.known import Known, read_known
from protokube.local.logs.places import logs_of_cloud, logs_of_host
from protokube.local.logs.targets import source_of


def sources(paths: Paths, known: Known) -> set[str]:
    """The logs that any host has, also one that is gone."""
    return {source for each in known.hosts for source in logs_of_host(paths.host(each.name), each.name)}


def beside(paths: Paths) -> set[str]:
    """The logs of the cloud itself."""
    return set(logs_of_cloud(paths))


def names(paths: Paths) -> list[str]:
    """Everything that can be asked for, for completion."""
    known = read_known(paths)
    return [*sorted(sources(paths, known)), *known.members, *(each.name for each in known.living), *beside(paths)]


def names_on(paths: Paths, word: str) -> list[str]:
    """`HOST/LOG` for every log of the host that a word begins with; empty if it names none."""
    host, slash, _ = word.partition("/")
    if not slash or "/" in host or not host.strip("."):
        return []
    return [f"{host}/{source}" for source in logs_of_host(paths.host(host), host)]


def listing(paths: Paths) -> dict[str, Any]:
    """By name: on which hosts, and when the last line was written. Members, and hosts that run, apart."""
    known = read_known(paths)
    found: dict[str, dict[str, list[Path]]] = {}
    for host in known.living:
        for source, files in logs_of_host(paths.host(host.name), host.name).items():
            found.setdefault(source, {})[host.name] = files
    rows = [
        _row(name, list(files), (each for some in files.values() for each in some))
        for name, files in sorted(found.items())
    ]
    for member, holder in known.members.items():
        rows.append(
            _row(member, [holder.now] if holder.now else [], found.get(source_of(member), {}).get(holder.now, []))
        )
    rows += [_row(name, [], files) for name, files in logs_of_cloud(paths).items()]
    return {"cluster": paths.cluster, "logs": rows, "hosts": [each.name for each in known.living]}


def _row(name: str, hosts: list[str], files: Iterable[Path]) -> dict[str, Any]:
    return {"name": name, "hosts": hosts, "lastWrite": max((_written(each) for each in files), default=None)}


def _written(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0
