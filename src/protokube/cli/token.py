"""`protokube token`: create, list and delete bootstrap tokens."""

from __future__ import annotations

import datetime as dt
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from protokube.cli.shared.cluster_view import cluster_option
from protokube.cli.shared.credentials import keys_option, server_option
from protokube.cli.shared.durations import Duration
from protokube.cli.shared.options import output_option
from protokube.errors import InvalidRequest, NotFound, Refused

if TYPE_CHECKING:
    from protokube.addons.tokens import Token
    from protokube.kube.client import KubeApi

Decorated = Callable[..., Any]
TEXT_OR_JSON = ("text", "json")
SHORTEST, LONGEST = 60.0, 72 * 3600.0
"""Seconds. A token is for one machine that is being set up, and somebody may find it there later."""
SECONDS_FOR_ACCESS = 300.0
"""Lifetime of the certificate with which a command reaches the API of a cluster in a store."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a command reaches the API, as its options say."""

    kubeconfig: Path | None
    cluster: str | None
    store_url: str | None
    server: str | None

    @contextmanager
    def opened(self) -> Iterator[KubeApi]:
        """By a kubeconfig; with `--store`, by a certificate of a few minutes, which is kept nowhere."""
        from protokube.cli.shared.credentials import MASTERS, Subject, cluster_keys, make_kubeconfig
        from protokube.kube import kubeconfig

        if self.store_url is None:
            if self.server is not None:
                raise InvalidRequest("--server needs --store: a kubeconfig names its server", hint="leave it out")
            with kubeconfig.opened(_chosen(self.kubeconfig, self.cluster)) as api:
                yield api
            return
        if self.kubeconfig is not None:
            raise InvalidRequest("--kubeconfig and --store are two ways to the API", hint="give one of them")
        with cluster_keys(self.cluster, self.store_url) as keys:
            text, _ = make_kubeconfig(keys, Subject("token-admin", (MASTERS,), SECONDS_FOR_ACCESS), self.server)
        with kubeconfig.opened_text(text, Path(f"kubeconfig-of-{keys.cluster}")) as api:
            yield api


def access_options(function: Decorated) -> Decorated:
    """Passed to the command as one `access`."""

    @wraps(function)
    def command(
        *, kubeconfig: Path | None, cluster: str | None, store_url: str | None, server: str | None, **others: Any
    ) -> Any:
        return function(access=Access(kubeconfig, cluster, store_url, server), **others)

    text = "Kubeconfig of the cluster.  [default: KUBECONFIG, then the local cluster's, then ~/.kube/config]"
    kind = click.Path(dir_okay=False, path_type=Path)
    option = click.option("--kubeconfig", type=kind, metavar="FILE", help=text)
    return option(cluster_option(keys_option(server_option(command))))


def _chosen(kubeconfig: Path | None, cluster: str | None) -> Path:
    """The kubeconfig to use: `--kubeconfig`, that of `--cluster`, or the default."""
    from protokube.cli.shared.cluster_view import find_running
    from protokube.kube.kubeconfig import HOME, VARIABLE, find
    from protokube.local.base import client_files
    from protokube.local.choose import clusters, one_cluster

    if kubeconfig is None and (cluster is not None or (not os.environ.get(VARIABLE) and len(clusters()) == 1)):
        paths = find_running(cluster)
        kubeconfig = client_files.folder(paths) / "kubeconfig"
        if not kubeconfig.exists():
            raise Refused(f"{paths.cluster} has no Kubernetes", hint="--kubeconfig FILE", code="needs-kubernetes")
    elif kubeconfig is None and not os.environ.get(VARIABLE) and len(clusters()) > 1:
        if not Path(HOME).expanduser().exists():
            one_cluster(None)  # raises: there are several
        click.echo(f"the cluster is that of {HOME}; --cluster names one of {', '.join(clusters())}", err=True)
    return find(kubeconfig)


@click.group()
def token() -> None:
    """Manage bootstrap tokens, with which new nodes join.

    With a bootstrap token the node that it was created for can request its own certificate, and nothing else. Tokens
    expire.

    \b
      protokube token create worker-7
      protokube token create worker-7 --ttl 1h --description "rack 7"
      protokube token list
      protokube token delete abcdef
      protokube token create worker-7 --store s3://bucket/clusters --cluster dev.example.com
    """


@token.command()
@click.argument("node")
@click.option(
    "--ttl", type=Duration(most=inf), default="24h", show_default=True, help="Lifetime of the token: 72h at most."
)
@click.option("--description", default="", help="Text that `token list` shows.")
@access_options
@output_option(default="text", choices=TEXT_OR_JSON)
def create(node: str, ttl: float, description: str, access: Access, output: str) -> None:
    """Create a token for one node and print it. It cannot be shown again.

    NODE is the name under which its kubelet registers: the machine's host name, in lower case.
    """
    from protokube.addons.tokens import PATH, new_token, to_secret

    if ttl < SHORTEST:
        raise InvalidRequest("--ttl is too short for a token", want="--ttl of a minute or more")
    if ttl > LONGEST:
        raise InvalidRequest("--ttl is too long for a token", want=f"--ttl of at most {LONGEST / 3600:g}h")
    expires = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=ttl)
    made = new_token(secrets.choice, node, expires, description)
    with access.opened() as api:
        api.create(PATH, to_secret(made))
    click.echo(json.dumps({**as_data(made), "token": str(made)}, indent=2) if output == "json" else str(made))


@token.command("list")
@access_options
@output_option(default="text", choices=TEXT_OR_JSON)
def list_tokens(access: Access, output: str) -> None:
    """List tokens, without their secrets."""
    from protokube.addons.tokens import PATH, TYPE, from_secret
    from protokube.cli.render.table import table

    with access.opened() as api:
        found = api.get(PATH, fieldSelector=f"type={TYPE}").get("items") or []
    # items of a list have no type
    tokens = sorted((each for tree in found if (each := from_secret({"type": TYPE, **tree}))), key=lambda each: each.id)
    documents = [as_data(each) for each in tokens]
    if output == "json":
        click.echo(json.dumps(documents, indent=2))
        return
    rows = [(each["id"], each["node"] or "-", each["expires"] or "never", each["description"]) for each in documents]
    click.echo("\n".join(table(("ID", "NODE", "EXPIRES", "DESCRIPTION"), rows)) or "no tokens")


@token.command()
@click.argument("token_id", metavar="ID")
@access_options
def delete(token_id: str, access: Access) -> None:
    """Delete a token before it expires. Nodes that already have a certificate keep it."""
    from protokube.addons.tokens import secret_path
    from protokube.kube.client import ApiError

    path = secret_path(token_id)
    with access.opened() as api:
        try:
            api.delete(path)
        except ApiError as error:
            if error.status == 404:
                short = token_id.partition(".")[0]
                raise NotFound(f"there is no token {short}", hint="`protokube token list`") from error
            raise
    click.echo(f"deleted {token_id.partition('.')[0]}")


def as_data(token: Token) -> dict[str, str]:
    """The fields of a token that are not secret."""
    expires = token.expires.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if token.expires else ""
    return {"id": token.id, "node": token.node, "expires": expires, "description": token.description}
