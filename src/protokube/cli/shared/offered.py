"""What a shell offers when a key is pressed: names of clusters, hosts, members, volumes and records of this machine.

The answer has to be quick, and silent whatever is wrong: an error would be printed into the line that is being typed.
Who may not read a cluster's state is offered nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from protokube.local.base.paths import Paths
    from protokube.local.view.names import Names

PATIENCE = 0.5
"""Seconds for an API server: a person waits for the key that was pressed."""
Offer = Callable[[click.Context, click.Parameter, str], list[str]]


def offer_clusters(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Those of this machine; none after --store, which is about others."""
    return [each for each in _clusters(context) if each.startswith(incomplete)]


def offer(choose: Callable[[Names], Iterable[str]]) -> Offer:
    """Completion by the names of the cluster that the command is about."""

    def offered(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        from protokube.local.view.names import read_names

        paths = chosen_cluster(context)
        return [each for each in choose(read_names(paths)) if each.startswith(incomplete)] if paths else []

    return offered


def offer_explained(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of the kind that was typed before."""
    kind = context.params.get("kind")
    chosen: Offer = {"volume": offer_volumes, "member": offer_members}.get(str(kind), offer_records)
    return chosen(context, parameter, incomplete)


offer_hosts = offer(lambda names: names.hosts)
offer_members = offer(lambda names: names.members)
offer_volumes = offer(lambda names: names.volumes)
offer_entered = offer(lambda names: (*names.hosts, *names.members))
offer_records = offer(lambda names: names.records)


def offer_logs(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Everything that `logs` takes; after `HOST/`, the logs of that host."""
    from protokube.errors import ProtokubeError
    from protokube.local.logs.listing import names, names_on

    paths = chosen_cluster(context)
    try:
        found = [] if paths is None else names_on(paths, incomplete) or names(paths)
    except (OSError, ProtokubeError):
        return []
    return [each for each in found if each.startswith(incomplete)]


def offer_services(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Services of the cluster, as its API names them now."""
    return service_names(context, incomplete)


def service_names(context: click.Context, incomplete: str) -> list[str]:
    from protokube.errors import ProtokubeError
    from protokube.local.base.client_files import kube_api

    paths = chosen_cluster(context)
    try:
        api = kube_api(paths, PATIENCE) if paths else None
        items = api.get("/api/v1/services").get("items", []) if api else []
    except (OSError, ProtokubeError):
        return []
    found = [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in items]
    names = [name if namespace == "default" else f"{namespace}/{name}" for namespace, name in sorted(found)]
    return [each for each in names if each.startswith(incomplete)]


def offer_exposed(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Ports that are exposed, and the Services they lead to."""
    from protokube.local.view.names import read_exposed

    paths = chosen_cluster(context)
    return [each for each in read_exposed(paths) if each.startswith(incomplete)] if paths else []


def chosen_cluster(context: click.Context) -> Paths | None:
    """The cluster that was named, or the only one; None if that is not clear."""
    from protokube.local.base.paths import Paths

    found = _clusters(context)
    name = context.params.get("cluster") or (found[0] if len(found) == 1 else None)
    return Paths.of(name) if name in found else None


def _clusters(context: click.Context) -> list[str]:
    if context.params.get("store_url"):
        return []
    from protokube.local.choose import clusters

    try:
        return clusters()
    except OSError:
        return []
