"""Which local cluster a command is about, and following it until something is the case."""

from __future__ import annotations

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
    from protokube.local.view.cluster import ClusterView

Decorated = Callable[..., Any]
EVERY = 0.25
"""Seconds between two looks while something is awaited."""
UNITS = {"": 1.0, "s": 1.0, "ms": 0.001, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def cluster_option(function: Decorated) -> Decorated:
    text = "The cluster; may be left out where there is only one."
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
            self.fail(f"{value!r} is not a length of time: such as 90s, 2m, 1h, 30d", param, ctx)
        return float(found[1]) * UNITS[found[2]]


def find_cluster(name: str | None) -> Paths:
    """The state of the cluster that was meant, if it may be looked at."""
    from protokube.local.base.paths import Paths
    from protokube.local.choose import one_cluster

    paths = Paths.of(one_cluster(name))
    if not may_open(paths.admin_socket):
        raise Refused(
            f"{paths.cluster} is not yours to look at", saw=f"{paths.admin_socket} may not be opened", hint="sudo"
        )
    return paths


def may_open(socket: Path) -> bool:
    """Whether a socket may be used, or is not there; one in a folder that is closed to us may not."""
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
    """One look after the other until the time is up: at least one, and one at the very end."""
    end = now() + seconds
    while True:
        began = now()
        yield look()
        left = end - now()
        if left <= 0:
            return
        sleep(max(min(every - (now() - began), left), 0.01))
