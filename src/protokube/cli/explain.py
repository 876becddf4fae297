"""`protokube explain`: why a volume, etcd member or DNS record is in its state, and what happens next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from protokube.cli.dns.options import object_options, ttl_option
from protokube.cli.dns.zones import dns_options
from protokube.cli.shared.cluster_view import cluster_option, seen_option
from protokube.cli.shared.offered import offer_explained
from protokube.cli.shared.options import Choice, output_option
from protokube.errors import InvalidRequest

if TYPE_CHECKING:
    from protokube.providers.dns.opened import OpenZones


@click.command()
@click.argument("kind", type=Choice(["volume", "member", "record"]))
@click.argument("name", shell_complete=offer_explained)
@cluster_option
@seen_option
@dns_options
@object_options
@ttl_option
@output_option(default="text", choices=("text", "json", "yaml"))
def explain(
    kind: str, name: str, cluster: str | None, store_url: str | None, provider: str | None, zones: tuple[str, ...],
    server: str | None, key_file: Path | None, hosts_file: Path, endpoint: str | None, kubeconfig: Path | None,
    context: str | None, watch_namespace: str, watch_ingress: bool, owner: str | None, ttl: int, output: str,
) -> None:  # fmt: skip
    """Explain the state of a volume, etcd member or DNS record.

    Shows what the cloud, the state store, the agents and etcd report about it, why it waits, and what happens next.
    Needs no Kubernetes API. With --dns, a record is explained as the dns-controller sees it: which objects request it,
    which zone it belongs to, what the zone holds now and who owns that. Pass the same options as to the dns-controller.
    With --store, everything is taken from what the masters last published there.

    \b
      protokube explain volume vol-1f2e3d4c
      protokube explain member etcd-a
      protokube explain record api.internal.dev.example.com
      protokube explain member etcd-a --store s3://bucket/clusters
      protokube explain record web.example.com --dns aws-route53 --kubeconfig admin.conf
    """
    exported = click.get_current_context().get_parameter_source("provider") is ParameterSource.ENVIRONMENT
    if (kind != "record" or store_url) and exported:
        provider = None  # PROTOKUBE_DNS is exported for other commands
    dns_requested = provider or kubeconfig or context or zones or server or key_file
    if dns_requested and store_url:
        raise InvalidRequest("--store does not go with --dns and --kubeconfig", hint="give one of them")
    if dns_requested and cluster is None:
        if kind != "record":
            raise InvalidRequest(f"--dns and --kubeconfig do not apply to a {kind}", want="explain record NAME")
        from protokube.cli.dns.explain import explain_name
        from protokube.cli.dns.zones import open_zones

        found: OpenZones = open_zones(
            provider, zones, server=server, key_file=key_file, hosts_file=hosts_file, endpoint=endpoint, read_only=True
        )
        explain_name(
            name, found, zones, kubeconfig=kubeconfig, context=context, namespace=watch_namespace,
            ingresses=watch_ingress, owner=owner, ttl=ttl, output=output,
        )  # fmt: skip
        return
    from protokube.cli.render.explain_member import explain_member
    from protokube.cli.render.explain_record import explain_record
    from protokube.cli.render.explain_volume import explain_volume
    from protokube.cli.shared.cluster_view import cluster_source, find_cluster
    from protokube.cli.shared.screen import show_data, show_painted

    with cluster_source(cluster, store_url) as source:
        view = source.look()
    if kind == "record" and store_url is None:
        from protokube.cli.dns.explain_local import explain_by_objects

        if explain_by_objects(
            find_cluster(cluster),
            view,
            name,
            namespace=watch_namespace,
            ingresses=watch_ingress,
            owner=owner,
            ttl=ttl,
            output=output,
        ):
            return
    explainers = {"volume": explain_volume, "member": explain_member, "record": explain_record}
    explanation = explainers[kind](view, name)
    if output == "text":
        show_painted(explanation.lines())
    else:
        show_data(explanation.tree(), output)
