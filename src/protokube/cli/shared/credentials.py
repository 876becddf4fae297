"""Client certificates for the Kubernetes API, signed by a cluster's CA in its state store.

Whoever can read the private keys in the store has full rights in the cluster already; this only saves them the steps.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import click

from protokube.errors import InvalidRequest, Refused

if TYPE_CHECKING:
    from protokube.store import Store

Decorated = Callable[..., Any]
MASTERS = "system:masters"
"""The group that may do everything."""


class Subject(NamedTuple):
    """The subject and lifetime of a certificate."""

    user: str
    groups: tuple[str, ...]
    ttl: float


class Keys(NamedTuple):
    """The store with a cluster's keys, and the URL of its API; empty if not known here."""

    store: Store
    cluster: str
    server: str


def keys_option(function: Decorated) -> Decorated:
    """Not from the environment: PROTOKUBE_STORE is exported for other commands, and must not hide a local cluster."""
    text = (
        "Sign with the CA in this state store, whose private keys you can read, instead of that of a local cluster: "
        "file:///path, s3://bucket/prefix, gs://bucket/prefix."
    )
    return click.option("--store", "store_url", metavar="URL", help=text)(function)


def server_option(function: Decorated) -> Decorated:
    text = "URL of the API server.  [default: that of the cluster]"
    return click.option("--server", metavar="URL", callback=_checked_server, help=text)(function)


def _checked_server(_: click.Context, __: click.Parameter, server: str | None) -> str | None:
    if server is None:
        return None
    try:
        parts = urlsplit(server)
        good = parts.scheme == "https" and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good:
        raise InvalidRequest(f"{server!r} is not the URL of an API server", want="such as https://api.dev.example.com")
    return server


@contextmanager
def cluster_keys(cluster: str | None, store_url: str | None) -> Iterator[Keys]:
    """Of the local cluster, or of the one in the store that `--store` names."""
    from protokube.cli.shared.cluster_view import find_cluster, opened_store, stored_cluster
    from protokube.local.base.client_files import api_server

    if store_url is not None:
        with opened_store(store_url) as store:
            yield Keys(store, stored_cluster(store, cluster), "")
        return
    paths = find_cluster(cluster)
    with opened_store(f"file://{paths.store}") as store:
        yield Keys(store, paths.cluster, api_server(paths))


def make_kubeconfig(keys: Keys, subject: Subject, server: str | None = None) -> tuple[str, dt.datetime]:
    """A kubeconfig with a new key and certificate, and when that expires."""
    from protokube.manifests.certificate import CertificateWanted
    from protokube.manifests.kubeconfig import by_content
    from protokube.pki.authority import load_authority
    from protokube.pki.expiry import end_of
    from protokube.pki.issue import issue
    from protokube.pki.keystore import Keystore
    from protokube.pki.shared import CLUSTER_AUTHORITY
    from protokube.store import layout

    authority = load_authority(Keystore(store=keys.store, layout=layout, cluster=keys.cluster), CLUSTER_AUTHORITY)
    wanted = CertificateWanted(
        authority=authority.name, common_name=subject.user, organizations=subject.groups, usages=("client auth",)
    )
    issued = issue(wanted, authority, time.time(), subject.ttl)
    url = server or keys.server or public_server(keys)
    text = by_content(
        keys.cluster, url, subject.user, ca=authority.certificate, certificate=issued.certificate, key=issued.key
    )
    return text, dt.datetime.fromtimestamp(end_of(issued.certificate), dt.UTC)


def public_server(keys: Keys) -> str:
    """The URL with `masterPublicName` and `securePort` of the complete configuration."""
    from protokube.cli.shared.inputs import text_of
    from protokube.spec.plain import plain_documents
    from protokube.store import layout

    path = layout.complete_spec(keys.cluster)
    match list(plain_documents([(path, text_of(keys.store.read(path).data, path))])):
        case [{"spec": {"masterPublicName": str(name)} as spec}]:
            port = (spec.get("kubeAPIServer") or {}).get("securePort") or 443
            return f"https://{name}" if port == 443 else f"https://{name}:{port}"
    raise Refused(f"{path} has no masterPublicName", hint="--server URL")
