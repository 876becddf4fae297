"""Choose the cluster of a command, on this machine or in a store, and poll its state."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from protokube.cli.shared.offered import offer_clusters
from protokube.errors import InvalidRequest, NeedsRoot, NotFound, Refused, TryLater

if TYPE_CHECKING:
    from protokube.local.base.paths import Paths
    from protokube.store import Store
    from protokube.view.cluster import ClusterView
    from protokube.view.source import Source

Decorated = Callable[..., Any]
EVERY = 0.25
"""Seconds between two polls."""
STORE_EVERY = 5.0
"""The same for a store, whose requests may be paid for."""


def cluster_option(function: Decorated) -> Decorated:
    text = "Name of the cluster.  [default: the only one]"
    return click.option("--cluster", metavar="NAME", shell_complete=offer_clusters, help=text)(function)


def seen_option(function: Decorated) -> Decorated:
    """Not from the environment: PROTOKUBE_STORE is exported for other commands, and must not hide a local cluster."""
    text = (
        "Read what the agents published in this state store instead of looking at a local cluster: file:///path, "
        "s3://bucket/prefix, gs://bucket/prefix."
    )
    return click.option("--store", "store_url", metavar="URL", help=text)(function)


def find_cluster(name: str | None) -> Paths:
    """The paths of the chosen cluster. Refused without permission to read its state."""
    from protokube.local.base.paths import Paths
    from protokube.local.choose import one_cluster

    paths = Paths.of(one_cluster(name))
    if not may_open(paths.admin_socket):
        raise NeedsRoot(
            f"no permission to read {paths.cluster}", saw=f"{paths.admin_socket} may not be opened", hint="sudo"
        )
    return paths


def find_running(name: str | None) -> Paths:
    """The same for a command that needs its local cloud. Refused, with what starts it, if that does not run."""
    paths = find_cluster(name)
    if is_served(paths.admin_socket):
        return paths
    if not paths.database.is_file():
        hint = f"`protokube up --cluster {paths.cluster}` completes it"
        raise Refused(f"{paths.cluster} was never brought up completely", hint=hint, code="cluster-down")
    what = "is stopped" if paths.stopped.exists() else "does not run: its local cloud has ended"
    raise Refused(f"{paths.cluster} {what}", hint=f"protokube start --cluster {paths.cluster}", code="cluster-down")


@contextmanager
def cluster_source(cluster: str | None, store_url: str | None) -> Iterator[Source]:
    """The cluster as this machine sees it, or as its agents report it to a store."""
    if store_url is None:
        from protokube.local.view.look import Looker

        with Looker(find_cluster(cluster)) as looker:
            yield looker
        return
    from protokube.view.stored import StoredSource

    with opened_store(store_url) as store:
        yield StoredSource(store, stored_cluster(store, cluster))


@contextmanager
def opened_store(url: str) -> Iterator[Store]:
    from protokube.store.open import open_store

    store = open_store(url)
    try:
        yield store
    finally:
        store.close()


def stored_cluster(store: Store, name: str | None) -> str:
    """The named cluster, or the only one in the store."""
    from protokube.store import layout
    from protokube.store.paths import why_not
    from protokube.view.stored import is_missing, no_such_cluster

    if name is not None:
        if "/" in name or why_not(name):
            raise InvalidRequest(f"{name!r} is no name of a cluster", hint="check --cluster")
        if is_missing(store, name):
            raise no_such_cluster(store, name)
        return name
    try:
        found = layout.clusters(store)
    except Refused as why:  # keys below it are private; what agents publish is not
        raise InvalidRequest(
            f"the clusters in {store.url} cannot be listed", saw=why.saw or why.message, hint="--cluster NAME"
        ) from why
    if not found:
        raise NotFound(f"there is no cluster in {store.url}", hint="check the store's URL", code="no-cluster")
    if len(found) > 1:
        raise InvalidRequest(
            f"there are several clusters in {store.url}: {', '.join(found)}",
            hint=f"--cluster {found[0]}",
            code="several-clusters",
        )
    return found[0]


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


def is_served(path: Path) -> bool:
    """Whether a process listens at this socket, even if it does not answer."""
    import socket

    from protokube.providers.clients.local import connect

    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(1.0)
            connect(connection, path)
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    except OSError:  # it listens and is too busy to accept
        return True
    return True


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
    tell: Callable[[str], None] = lambda _why: None,
) -> Iterator[ClusterView]:
    """Poll until the time is up: at least once, and once more at the very end.

    A look that fails for now is told and repeated; TryLater if not one succeeded.
    """
    end, seen, failed = now() + seconds, False, None
    while True:
        began = now()
        try:
            view = look()
        except TryLater as why:
            failed = why
            tell(why.message)
        else:
            seen = True
            yield view
        left = end - now()
        if left <= 0 and failed is not None and not seen:
            raise failed
        if left <= 0:
            return
        sleep(max(min(every - (now() - began), left), 0.01))


class FailedLooks:
    """Shows why nothing can be seen now, once for each reason, apart from the result."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, why: str) -> None:
        if why != self._last:
            click.echo(f"waiting: {why}", err=True)
        self._last = why
