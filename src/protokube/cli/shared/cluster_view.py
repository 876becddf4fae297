"""Choose the local cluster of a command, and poll its state."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from protokube.errors import Refused

if TYPE_CHECKING:
    from protokube.local.base.paths import Paths
    from protokube.view.cluster import ClusterView

Decorated = Callable[..., Any]
EVERY = 0.25
"""Seconds between two polls."""
UNITS = {"": 1.0, "s": 1.0, "ms": 0.001, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def cluster_option(function: Decorated) -> Decorated:
    text = "Name of the local cluster.  [default: the only one]"
    return click.option("--cluster", metavar="NAME", shell_complete=known_clusters, help=text)(function)


def known_clusters(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from protokube.local.choose import clusters

    try:
        return [each for each in clusters() if each.startswith(incomplete)]
    except OSError:
        return []


class Duration(click.ParamType[float]):
    """`90s`, `2m`, `1.5h`, `30d`, or a number of seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", str(value))
        if found is None or found[2] not in UNITS:
            self.fail(f"{value!r} is not a duration: such as 90s, 2m, 1h, 30d", param, ctx)
        return float(found[1]) * UNITS[found[2]]


def find_cluster(name: str | None) -> Paths:
    """The paths of the chosen cluster. Refused without permission to read its state."""
    from protokube.local.base.paths import Paths
    from protokube.local.choose import one_cluster

    paths = Paths.of(one_cluster(name))
    if not may_open(paths.admin_socket):
        raise Refused(
            f"no permission to read {paths.cluster}", saw=f"{paths.admin_socket} may not be opened", hint="sudo"
        )
    return paths


def waits(paths: Paths, *kinds: str) -> list[str]:
    """What the agents wait for; what needs a person comes first."""
    found = []
    for file in sorted(paths.hosts.glob("*/run/protokube/status.json")):
        try:
            status = json.loads(file.read_text())
        except (OSError, ValueError):
            continue
        notes = [note for kind in kinds or ("needsAPerson", "waiting") for note in status["report"][kind]]
        found += [f"{status['machine']['name']}: {note.get('about') or note['step']}: {note['text']}" for note in notes]
    return found


def may_open(socket: Path) -> bool:
    """Whether we may use a socket, or it does not exist. False if we may not even enter its folder."""
    try:
        return not socket.exists() or os.access(socket, os.R_OK | os.W_OK, effective_ids=True)
    except PermissionError:
        return False


def follow(
    look: Callable[[], ClusterView],
    seconds: float,
    *,
    every: float = EVERY,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[ClusterView]:
    """Poll until the time is up: at least once, and once more at the very end."""
    end = now() + seconds
    while True:
        began = now()
        yield look()
        left = end - now()
        if left <= 0:
            return
        sleep(max(min(every - (now() - began), left), 0.01))
