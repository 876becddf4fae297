"""`protokube export`: credentials with which a person uses a cluster."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

import click

from protokube.cli.shared.cluster_view import cluster_option
from protokube.cli.shared.credentials import (
    MASTERS,
    Subject,
    cluster_keys,
    keys_option,
    make_kubeconfig,
    server_option,
)
from protokube.cli.shared.durations import Duration
from protokube.errors import InvalidRequest, Refused

ADMIN = "admin"
SHORTEST, LONGEST = 60.0, 3650 * 86400.0
"""Seconds; no CA is valid for longer than the latter."""
LONGEST_NAME = 64
"""Upper bound of X.520 for a name in a certificate."""


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
    "--ttl", type=Duration(most=inf), default="24h", show_default=True, help="Lifetime of the certificate, "
    "such as 90m, 24h, 30d. It cannot be revoked, so keep it short."
)  # fmt: skip
@server_option
@click.option(
    "-o", "--output", metavar="FILE", default="-", help="File to write, with mode 0600; `-` is standard output."
)
@keys_option
def kubeconfig(
    cluster: str | None, user: str, groups: str | None, ttl: float, server: str | None, output: str,
    store_url: str | None,
) -> None:  # fmt: skip
    """Write a kubeconfig with a new, short-lived client certificate, signed by the cluster's CA.

    Works for a local cluster, or with --store for one whose keys are in a store that you can read.

    \b
      protokube export kubeconfig -o admin.kubeconfig
      protokube export kubeconfig --user jane --groups developers,on-call --ttl 8h -o jane.kubeconfig
      protokube export kubeconfig --store s3://bucket/clusters --cluster dev.example.com -o -
    """
    subject = check_subject(user, groups, ttl)
    with cluster_keys(cluster, store_url) as keys:
        text, end = make_kubeconfig(keys, subject, server)
    if output == "-":
        click.echo(text, nl=False)
    else:
        write(Path(output), text, keys.cluster)
    place = "" if output == "-" else f"{output}: "
    in_groups = f" ({', '.join(subject.groups)})" if subject.groups else ""
    click.echo(f"{place}{user}{in_groups} has access to {keys.cluster} until {end:%F %T} UTC", err=True)


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
