"""`protokube export`: credentials with which a person uses a cluster."""

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
"""Seconds; no CA is valid for longer than the latter."""
LONGEST_NAME = 64
"""Upper bound of X.520 for a name in a certificate."""


class Subject(NamedTuple):
    """The subject and lifetime of the certificate."""

    user: str
    groups: tuple[str, ...]
    ttl: float


class Source(NamedTuple):
    """The store with the cluster's keys, and the URL of its API; empty if not known here."""

    store: Store
    cluster: str
    server: str


@click.group()
def export() -> None:
    """Export a kubeconfig with a short-lived certificate.

    \b
      protokube export kubeconfig -o admin.kubeconfig
    """


@export.command()
@cluster_option
@click.option("--user", default=ADMIN, show_default=True, help="User name in the certificate.")
@click.option(
    "--groups", help=f"Groups in the certificate, separated by commas.  [default: {MASTERS} for {ADMIN}, else none]"
)
@click.option(
    "--ttl", type=Duration(), default="24h", show_default=True, help="Lifetime of the certificate, "
    "such as 90m, 24h, 30d. It cannot be revoked, so keep it short."
)  # fmt: skip
@click.option("--server", metavar="URL", help="URL of the API server.  [default: that of the cluster]")
@click.option(
    "-o", "--output", metavar="FILE", default="-", help="File to write, with mode 0600; `-` is standard output."
)
@store_option(required=False)
@click.option("--name", metavar="CLUSTER", help="With --store: the name of the cluster in the store.")
def kubeconfig(
    cluster: str | None, user: str, groups: str | None, ttl: float, server: str | None, output: str,
    store_url: str | None, name: str | None,
) -> None:  # fmt: skip
    """Write a kubeconfig with a new, short-lived client certificate, signed by the cluster's CA.

    Works for a local cluster, or with --store and --name for one whose keys are in a store that you can read.

    \b
      protokube export kubeconfig -o admin.kubeconfig
      protokube export kubeconfig --user jane --groups developers,on-call --ttl 8h -o jane.kubeconfig
      protokube export kubeconfig --store s3://bucket/clusters --name dev.example.com -o -
    """
    subject = check_subject(user, groups, ttl)
    if server is not None:
        check_server(server)
    source = find_store(cluster, store_url, name)
    try:
        text, end = make_kubeconfig(source, subject, server or source.server or public_server(source))
    finally:
        source.store.close()
    if output == "-":
        click.echo(text, nl=False)
    else:
        write(Path(output), text, source.cluster)
    place = "" if output == "-" else f"{output}: "
    in_groups = f" ({', '.join(subject.groups)})" if subject.groups else ""
    click.echo(f"{place}{user}{in_groups} has access to {source.cluster} until {end:%F %T} UTC", err=True)


def check_subject(user: str, groups: str | None, ttl: float) -> Subject:
    if groups is None:
        groups = MASTERS if user == ADMIN else ""
    found = tuple(dict.fromkeys(each.strip() for each in groups.split(",") if each.strip()))
    for what, each in (("user", user), *(("group", group) for group in found)):
        if not each.strip() or len(each) > LONGEST_NAME or not each.isprintable():
            raise InvalidRequest(
                f"no certificate can name the {what} {each!r}", want=f"1 to {LONGEST_NAME} printable characters"
            )
    if ttl < SHORTEST:
        raise InvalidRequest(f"--ttl {ttl:g}s is too short to be of use", want="at least 60s, such as 90m, 24h, 30d")
    if ttl > LONGEST:
        raise InvalidRequest("--ttl is longer than the lifetime of a CA", want=f"at most {LONGEST / 86400:g}d")
    return Subject(user, found, ttl)


def check_server(server: str) -> None:
    try:
        parts = urlsplit(server)
        good = parts.scheme == "https" and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good:
        raise InvalidRequest(f"{server!r} is not the URL of an API server", want="such as https://api.dev.example.com")


def find_store(cluster: str | None, store_url: str | None, name: str | None) -> Source:
    """The store of the local cluster, or the one that `--store` names."""
    from protokube.store import layout
    from protokube.store.open import open_store

    if name and cluster:
        raise InvalidRequest("--cluster is for a local cluster, --name for one in a store", hint="give one of them")
    if name and not store_url:
        raise InvalidRequest(f"--name {name} needs a store", hint="--store URL, or PROTOKUBE_STORE")
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
    """The URL with `masterPublicName` and `securePort` of the complete configuration."""
    from protokube.cli.shared.inputs import text_of
    from protokube.spec.plain import plain_documents
    from protokube.store import layout

    path = layout.complete_spec(source.cluster)
    match list(plain_documents([(path, text_of(source.store.read(path).data, path))])):
        case [{"spec": {"masterPublicName": str(name)} as spec}]:
            port = (spec.get("kubeAPIServer") or {}).get("securePort") or 443
            return f"https://{name}" if port == 443 else f"https://{name}:{port}"
    raise Refused(f"{path} has no masterPublicName", hint="--server URL")


def make_kubeconfig(source: Source, subject: Subject, server: str) -> tuple[str, dt.datetime]:
    """The kubeconfig, and when its certificate expires."""
    from protokube.manifests.certificate import CertificateWanted
    from protokube.manifests.kubeconfig import by_content
    from protokube.pki.authority import load_authority
    from protokube.pki.expiry import end_of
    from protokube.pki.issue import issue
    from protokube.pki.keystore import Keystore
    from protokube.pki.shared import CLUSTER_AUTHORITY
    from protokube.store import layout

    authority = load_authority(Keystore(store=source.store, layout=layout, cluster=source.cluster), CLUSTER_AUTHORITY)
    wanted = CertificateWanted(
        authority=authority.name, common_name=subject.user, organizations=subject.groups, usages=("client auth",)
    )
    issued = issue(wanted, authority, time.time(), subject.ttl)
    text = by_content(
        source.cluster, server, subject.user, ca=authority.certificate, certificate=issued.certificate, key=issued.key
    )
    return text, dt.datetime.fromtimestamp(end_of(issued.certificate), dt.UTC)


def write(path: Path, text: str, cluster: str) -> None:
    """Write atomically, following symlinks. Refuse to overwrite a device, or a file that is not our kubeconfig."""
    from protokube.host.files import read_or_none, write_atomic

    try:
        place = path.resolve()
        if place.exists() and not place.is_file():
            raise Refused(f"{path} is not a file", hint="without -o it is written to standard output")
        before = read_or_none(place)
        if before and clusters_in(before) != [cluster]:
            raise Refused(
                f"{path} exists, and is not a kubeconfig for {cluster} alone",
                hint="name another file with -o; KUBECONFIG takes several, separated by colons",
            )
        write_atomic(place, text.encode(), 0o600)
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror}", hint="name another file with -o") from error


def clusters_in(data: bytes) -> list[Any]:
    """The cluster names in a kubeconfig; empty if the data is not a kubeconfig."""
    import yaml

    try:
        tree: Any = yaml.safe_load(data)
        return [each["name"] for each in tree["clusters"]] if tree["kind"] == "Config" else []
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError):
        return []
