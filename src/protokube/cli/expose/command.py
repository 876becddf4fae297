"""`protokube expose`: open, list and close ports of this machine that lead to Services."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from protokube.cli.shared.cluster_view import cluster_option
from protokube.cli.shared.offered import offer_exposed, offer_services, service_names
from protokube.cli.shared.options import output_option
from protokube.errors import InvalidRequest, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protokube.kube.client import KubeApi
    from protokube.local.base.paths import Paths
    from protokube.view.values import ExposedView

LOOPBACK = "127.0.0.1"
PATIENCE = 10.0


class WithServices(click.Group):
    """A first word that is no command of ours is a Service: `expose web` is `expose add web`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = args and (args[0] in self.commands or args[0] in self.get_help_option_names(ctx))
        return super().resolve_command(ctx, args if known else ["add", *args])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Options of `add` may stand before the Service."""
        if args and args[0].startswith("-") and args[0] not in self.get_help_option_names(ctx):
            args = ["add", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = super().shell_complete(ctx, incomplete)
        return [*found, *map(CompletionItem, service_names(ctx, incomplete))]


@click.group(cls=WithServices, subcommand_metavar="SERVICE | COMMAND [ARGS]...")
def expose() -> None:
    """Reach Services of a cluster at ports of this machine.

    SERVICE is [NAMESPACE/]NAME[:PORT], with the number or name of a TCP port if the Service has several. Connections go
    to a pod that is ready. The port stays when hosts are replaced and when the local cloud starts again, until it is
    removed or the cluster is taken down.

    \b
      protokube expose web                   # at 127.0.0.1, and says at which port
      protokube expose shop/web:http --port 8080
      protokube expose list
      protokube expose remove 8080
    """


@expose.command()
@click.argument("service", shell_complete=offer_services)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Port of this machine.  [default: that of the Service, 8080 for 80, or a free one]",
)
@click.option(
    "--address", default=LOOPBACK, show_default=True, help="Address of this machine; others than loopback can be "
    "reached by anybody in its network."
)  # fmt: skip
@cluster_option
@output_option(default="text", choices=("text", "json"))
def add(service: str, port: int | None, address: str, cluster: str | None, output: str) -> None:
    """Open a port that leads to a Service; the same as `expose SERVICE`.

    A port that is in use is refused. What is exposed already keeps its port.
    """
    from protokube.cli.render.tree import exposed_tree
    from protokube.kube.services import ask as ask_endpoints
    from protokube.kube.services import choose_port, find, read_name
    from protokube.local.cloud.exposed import read_address
    from protokube.view.values import ExposedView

    wanted, address = read_name(service), read_address(address)
    paths = _cluster(cluster)
    with _api(paths) as api:
        chosen = choose_port(find(api, wanted), wanted)
        name = f"{wanted.namespace}/{wanted.name}:{wanted.port or chosen['port']}"
        ready = len(ask_endpoints(api, wanted))
    row = _admin(paths).call("expose", service=name, address=address, local_port=port, prefer=int(chosen["port"]))
    made = ExposedView(**row, listening=True)
    if made.warning:
        click.echo(f"warning: {made.warning}", err=True)
    if not ready:
        click.echo(f"no pod behind {name} is ready yet; connections are closed until one is", err=True)
    if output == "json":
        click.echo(json.dumps(exposed_tree(made), indent=2))
    else:
        click.echo(f"{made.here} leads to {made.target}")


@expose.command("list")
@cluster_option
@output_option(default="text", choices=("text", "json"))
def list_exposed(cluster: str | None, output: str) -> None:
    """List the exposed ports.

    Shows why the last connection to one was not served, and why one is not open.
    """
    from protokube.cli.render.table import table
    from protokube.cli.render.tree import exposed_tree
    from protokube.cli.shared.screen import show_painted

    rows = exposed(_cluster(cluster))
    if output == "json":
        click.echo(json.dumps([exposed_tree(each) for each in rows], indent=2))
        return
    lines = table(("PORT", "SERVICE", "STATE"), [(each.here, each.target, each.state) for each in rows])
    show_painted(lines or ["no port is exposed: `protokube expose SERVICE`"])


@expose.command()
@click.argument("what", metavar="PORT|SERVICE", shell_complete=offer_exposed)
@click.option("--address", help="Only at this address, where several have the same port.")
@cluster_option
@output_option(default="text", choices=("text", "json"))
def remove(what: str, address: str | None, cluster: str | None, output: str) -> None:
    """Close an exposed port, or all of a Service.

    Connections through it end.
    """
    from protokube.cli.render.tree import exposed_tree

    paths = _cluster(cluster)
    rows = exposed(paths)
    found = [each for each in matching(rows, what) if address in (None, each.address)]
    if not found:
        from protokube.nearest import no_such

        names = dict.fromkeys([*(str(each.local_port) for each in rows), *(each.target for each in rows)])
        also = [each.service for each in rows]
        raise no_such("exposed port", what, names, also=also, hint="protokube expose list")
    for each in found:
        _admin(paths).call("unexpose", address=each.address, local_port=each.local_port)
    if output == "json":
        click.echo(json.dumps([exposed_tree(each) for each in found], indent=2))
    else:
        for each in found:
            click.echo(f"{each.here} is closed")


def matching(rows: Sequence[ExposedView], what: str) -> list[ExposedView]:
    """The ports that a number or the name of a Service means. Pure."""
    from protokube.kube.services import read_name

    if what.isdigit():
        return [each for each in rows if str(each.local_port) == what]
    try:
        wanted = read_name(what)
    except InvalidRequest:
        return []
    named = [each for each in rows if (each.namespace, each.service) == (wanted.namespace, wanted.name)]
    return [each for each in named if wanted.port in ("", each.port)]


def exposed(paths: Paths) -> list[ExposedView]:
    from protokube.view.values import ExposedView

    return [ExposedView(**each) for each in _admin(paths).call("about").get("exposed", ())]


def _cluster(name: str | None) -> Paths:
    from protokube.cli.shared.cluster_view import find_running

    return find_running(name)


def _admin(paths: Paths) -> Any:
    from protokube.providers.clients.local import LocalClient

    return LocalClient(paths.admin_socket, patience=PATIENCE)


@contextmanager
def _api(paths: Paths) -> Iterator[KubeApi]:
    from protokube.local.base.client_files import kube_api

    api = kube_api(paths, PATIENCE)
    if api is None:
        raise Refused(
            f"{paths.cluster} has no Kubernetes, so it has no Services",
            hint="protokube up",
            code="needs-kubernetes",
        )
    try:
        yield api
    finally:
        api.close()
