"""`protokube get`: what the state store holds."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from protokube.cli.shared.options import output_option, store_option

if TYPE_CHECKING:
    from protokube.store import Store


def spec_as_written(store: Store, cluster: str) -> list[tuple[str, str]]:
    from protokube.store import layout

    return [_text(store, layout.config(cluster))]


def completed(store: Store, cluster: str) -> list[tuple[str, str]]:
    """The complete cluster, and the groups that it lists; other groups in the store are outdated.

    A cluster that kops wrote does not list its groups; then all groups in the store belong to it.
    """
    from protokube.config import document
    from protokube.spec.plain import plain_documents
    from protokube.store import layout

    whole = _text(store, layout.complete_spec(cluster))
    match list(plain_documents([whole])):
        case [{"metadata": {"annotations": {document.GROUPS_ANNOTATION: str(names)}}}]:
            paths = [layout.instance_group(cluster, name) for name in names.split(",") if name]
        case _:
            paths = list(store.list_paths(layout.instance_groups(cluster)))
    return [whole, *(_text(store, path) for path in paths)]


def _text(store: Store, path: str) -> tuple[str, str]:
    from protokube.cli.shared.inputs import text_of

    return path, text_of(store.read(path).data, path)


OTHERS = ("coredns", "etcd", "image", "kubernetes")
"""What `get` can get other than clusters."""


class Get(click.Command):
    """Reads clusters, and dispatches `get kubernetes`, `get image` and so on to their own commands."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if other := other_command(args[0]) if args else None:
            return other.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def other_command(name: str) -> click.Command | None:
    match name:
        case "kubernetes":
            from protokube.cli.get.kubernetes import kubernetes

            return kubernetes
        case "etcd":
            from protokube.cli.get.etcd import etcd

            return etcd
        case "coredns":
            from protokube.cli.get.coredns import coredns

            return coredns
        case "image":
            from protokube.cli.get.image import image

            return image
    return None


def other_things(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion: what `get` can get other than clusters."""
    return [each for each in OTHERS if each.startswith(incomplete)]


@click.command(cls=Get)
@click.argument("cluster", metavar="[CLUSTER]", required=False, shell_complete=other_things)
@store_option(required=True)
@output_option(default="yaml")
@click.option("--as-written", is_flag=True, help="The spec as the user wrote it, not the complete configuration.")
def get(cluster: str | None, store_url: str, output: str, as_written: bool) -> None:
    """Read clusters from a state store; get binaries.

    Without CLUSTER: the names of the clusters in it. For third-party binaries see `protokube get kubernetes --help`,
    also `etcd` and `coredns`; for the image of the dns-controller see `protokube get image --help`.

    \b
      protokube get --store s3://bucket/clusters
      protokube get dev.example.com --store s3://bucket/clusters
      protokube get kubernetes 1.34.1
      protokube get etcd 3.6.8
      protokube get image dns-controller.tar
    """
    from protokube.store import layout
    from protokube.store.open import open_store

    store = open_store(store_url)
    try:
        if cluster is None:
            names = list(layout.clusters(store))
            click.echo(json.dumps(names) if output == "json" else "\n".join(names) or f"no cluster in {store.url}")
            return
        texts = spec_as_written(store, cluster) if as_written else completed(store, cluster)
    finally:
        store.close()
    if output == "json":
        from protokube.config.document import write_json
        from protokube.spec.plain import plain_documents

        write_json(plain_documents(texts), sys.stdout)
    else:
        click.echo("---\n".join(text for _, text in texts), nl=False)
