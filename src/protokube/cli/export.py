"""`protokube export`: what a person needs to speak to a cluster."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import click

from protokube.cli.shared.cluster_view import Duration, cluster_option
from protokube.cli.shared.options import store_option
from protokube.errors import InvalidRequest, Refused

if TYPE_CHECKING:
    from protokube.store import Store

ADMIN, MASTERS = "admin", "system:masters"
SHORTEST, LONGEST = 60.0, 3650 * 86400.0
"""Seconds; no authority lives longer than the latter."""
LONGEST_NAME = 64
"""X.520 allows no more in a certificate."""


class Asked(NamedTuple):
    """Who is to be let in, and for how long."""

    user: str
    groups: tuple[str, ...]
    ttl: float


class Source(NamedTuple):
    """Where the cluster's keys lie, and where its API answers, if that is known here."""

    store: Store
    cluster: str
    server: str


@click.group()
def export() -> None:
    """A kubeconfig for a person, which ends by itself.

    \b
      protokube export kubeconfig -o admin.kubeconfig
    """


@export.command()
@cluster_option
@click.option("--user", default=ADMIN, show_default=True, help="Whom its certificate names.")
@click.option("--groups", help=f"Separated by commas. Left out: {MASTERS} for {ADMIN}, none for anybody else.")
@click.option(
    "--ttl", type=Duration(), default="24h", show_default=True, help="How long it is valid: 90m, 24h, 30d. Nothing can "
    "take it back before its end, so it is short unless you say otherwise."
)  # fmt: skip
@click.option("--server", metavar="URL", help="Where the API answers; left out, where this cluster's is known to be.")
@click.option(
    "-o", "--output", metavar="FILE", default="-", help="Written for its owner alone; `-` is standard output."
)
@store_option(required=False)
@click.option("--name", metavar="CLUSTER", help="With --store: the cluster in it.")
def kubeconfig(
    cluster: str | None, user: str, groups: str | None, ttl: float, server: str | None, output: str,
    store_url: str | None, name: str | None,
) -> None:  # fmt: skip
    """A kubeconfig with a certificate of its own in it, signed by the cluster's authority and soon over.

    For the local cluster, or with --store and --name for one whose keys lie in a store that you may read.

    \b
      protokube export kubeconfig -o admin.kubeconfig
      protokube export kubeconfig --user jane --groups developers,on-call --ttl 8h -o jane.kubeconfig
      protokube export kubeconfig --store s3://bucket/clusters --name dev.example.com -o -
    """
    asked = check_asked(user, groups, ttl)
    if server is not None:
        check_server(server)
    source = find_store(cluster, store_url, name)
    try:
        text, end = made(source, asked, server or source.server or public_server(source))
    finally:
        source.store.close()
    if output == "-":
        click.echo(text, nl=False)
    else:
        write(Path(output), text, source.cluster)
    place = "" if output == "-" else f"{output}: "
    groups_said = f" ({', '.join(asked.groups)})" if asked.groups else ""
    click.echo(f"{place}{user}{groups_said} may enter {source.cluster} until {end:%F %T} UTC", err=True)


def check_asked(user: str, groups: str | None, ttl: float) -> Asked:
    if groups is None:
        groups = MASTERS if user == ADMIN else ""
    found = tuple(dict.fromkeys(each.strip() for each in groups.split(",") if each.strip()))
    for what, each in (("user", user), *(("group", group) for group in found)):
        if not each.strip() or len(each) > LONGEST_NAME or not each.isprintable():
            raise InvalidRequest(
                f"no certificate can name the {what} {each!r}", want=f"1 to {LONGEST_NAME} characters that can be read"
            )
    if ttl < SHORTEST:
        raise InvalidRequest(f"--ttl {ttl:g}s is too short to be of use", want="at least 60s, such as 90m, 24h, 30d")
    if ttl > LONGEST:
        raise InvalidRequest("--ttl is longer than an authority lives", want=f"at most {LONGEST / 86400:g}d")
    return Asked(user, found, ttl)


def check_server(server: str) -> None:
    try:
        parts = urlsplit(server)
        good = parts.scheme == "https" and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good:
        raise InvalidRequest(f"{server!r} is not the address of an API", want="such as https://api.dev.example.com")


def find_store(cluster: str | None, store_url: str | None, name: str | None) -> Source:
    """The local cluster's own store, unless another one is meant."""
    from protokube.store import layout
    from protokube.store.open import open_store

    if name and cluster:
        raise InvalidRequest("--cluster is for a local cluster, --name for one in a store", hint="say one of them")
    if name and not store_url:
        raise InvalidRequest(f"{name} is in which store?", hint="--store URL, or PROTOKUBE_STORE")
    if store_url and not cluster:
        store = open_store(store_url)
        if name is None:
            found = ", ".join(layout.clusters(store)) or "none at all"
            store.close()
            raise InvalidRequest(f"which cluster of {store.url}?", saw=found, hint="--name CLUSTER")
        return Source(store, name, "")
    from protokube.cli.shared.cluster_view import find_cluster
    from protokube.local.base.client_files import api_server

    paths = find_cluster(cluster)
    return Source(open_store(f"file://{paths.store}"), paths.cluster, api_server(paths))


def public_server(source: Source) -> str:
    """By the name that is for everybody, as the complete configuration has it."""
    from protokube.cli.shared.inputs import text_of
    from protokube.spec.plain import plain_documents
    from protokube.store import layout

    path = layout.complete_spec(source.cluster)
    match list(plain_documents([(path, text_of(source.store.read(path).data, path))])):
        case [{"spec": {"masterPublicName": str(name)} as spec}]:
            port = (spec.get("kubeAPIServer") or {}).get("securePort") or 443
            return f"https://{name}" if port == 443 else f"https://{name}:{port}"
    raise Refused(f"{path} does not say how the API is called", hint="--server URL")


def made(source: Source, asked: Asked, server: str) -> tuple[str, dt.datetime]:
    """The kubeconfig, and until when it is good."""
    from protokube.manifests.kubeconfig import by_content
    from protokube.pki.authority import load_authority
    from protokube.pki.ending import end_of
    from protokube.pki.issue import issue
    from protokube.pki.shared import CLUSTER_AUTHORITY
    from protokube.pki.shelf import Shelf
    from protokube.pki.wanted import CertificateWanted
    from protokube.store import layout

    authority = load_authority(Shelf(store=source.store, layout=layout, cluster=source.cluster), CLUSTER_AUTHORITY)
    wanted = CertificateWanted(
        authority=authority.name, common_name=asked.user, organizations=asked.groups, usages=("client auth",)
    )
    issued = issue(wanted, authority, time.time(), asked.ttl)
    text = by_content(
        source.cluster, server, asked.user, ca=authority.certificate, certificate=issued.certificate, key=issued.key
    )
    return text, dt.datetime.fromtimestamp(end_of(issued.certificate), dt.UTC)


def write(path: Path, text: str, cluster: str) -> None:
    """In one step, where a link leads to, and never over a file that holds something else or a device."""
    from protokube.host.files import read_or_none, write_atomic

    try:
        place = path.resolve()
        if place.exists() and not place.is_file():
            raise Refused(f"{path} is not a file", hint="without -o it is printed")
        before = read_or_none(place)
        if before and clusters_in(before) != [cluster]:
            raise Refused(
                f"{path} is there already, and is not a kubeconfig of {cluster} alone",
                hint="name another file with -o; KUBECONFIG takes several, separated by colons",
            )
        write_atomic(place, text.encode(), 0o600)
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror}", hint="name another file with -o") from error


def clusters_in(data: bytes) -> list[Any]:
    """The names of the clusters in a kubeconfig; none in what is not one."""
    import yaml

    try:
        tree: Any = yaml.safe_load(data)
        return [each["name"] for each in tree["clusters"]] if tree["kind"] == "Config" else []
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError):
        return []
