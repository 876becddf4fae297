"""`protokube export`: credentials with which a person uses a cluster."""

from __future__ import annotations

import sys
from math import inf
from pathlib import Path
from typing import Any

import click

from protokube.cli.shared.cluster_view import cluster_option
from protokube.cli.shared.contexts import switch_option
from protokube.cli.shared.credentials import (
    MASTERS,
    Keys,
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
    "-o",
    "--output",
    "--file",
    "output",
    metavar="FILE",
    help="File to write, with mode 0600; `-` is standard output.  [default: standard output, unless it is a terminal]",
)
@click.option("--force", is_flag=True, help="Overwrite FILE, whatever is in it.")
@click.option("--merge", "merging", is_flag=True, help="Merge a context into your kubeconfig instead; see `up`.")
@switch_option
@keys_option
def kubeconfig(
    cluster: str | None, user: str, groups: str | None, ttl: float, server: str | None, output: str | None,
    force: bool, merging: bool, switch: bool, store_url: str | None,
) -> None:  # fmt: skip
    """Write a kubeconfig with a new, short-lived client certificate, signed by the cluster's CA.

    Works for a local cluster, or with --store for one whose keys are in a store that you can read. With --merge, the
    context is added to your own kubeconfig; under sudo, to that of the user who typed it.

    \b
      protokube export kubeconfig -o admin.kubeconfig
      protokube export kubeconfig --merge
      protokube export kubeconfig --user jane --groups developers,on-call --ttl 8h -o jane.kubeconfig
      protokube export kubeconfig --store s3://bucket/clusters --cluster dev.example.com -o -
    """
    subject = check_subject(user, groups, ttl)
    check_target(output, force=force, merging=merging)
    with cluster_keys(cluster, store_url) as keys:
        need_kubernetes(keys, local=store_url is None)
        text, end = make_kubeconfig(keys, subject, server)
    if merging:
        place = f"context {merge_export(text, keys, user, local=store_url is None, switch=switch)}: "
    elif output in (None, "-"):
        click.echo(text, nl=False)
        place = ""
    else:
        write(Path(output), text, keys.cluster, force=force)
        place = f"{output}: "
    in_groups = f" ({', '.join(subject.groups)})" if subject.groups else ""
    click.echo(f"{place}{user}{in_groups} has access to {keys.cluster} until {end:%F %T} UTC", err=True)


def check_target(output: str | None, *, force: bool, merging: bool) -> None:
    if merging and (output is not None or force):
        raise InvalidRequest(
            "--merge names the file by itself", hint="leave -o and --force out; KUBECONFIG names files"
        )
    if force and output in (None, "-"):
        raise InvalidRequest("--force is for a file", hint="-o FILE")
    if not merging and output is None and sys.stdout.isatty():
        raise InvalidRequest(
            "a kubeconfig has a private key, which a terminal would show",
            hint="-o FILE writes a file, --merge adds a context to your kubeconfig, and -o - shows it nevertheless",
        )


def need_kubernetes(keys: Keys, *, local: bool) -> None:
    """Refused if what is in force has no Kubernetes. Not known without a revision: before `up` has got that far."""
    from protokube.launch.revisions import in_force

    found = in_force(keys.store, keys.cluster)
    if found is not None and not found[1].kubernetes:
        hint = f"protokube up --cluster {keys.cluster} --kubernetes build" if local else "a spec with kubernetesVersion"
        raise Refused(f"{keys.cluster} has no Kubernetes, only etcd", hint=hint, code="needs-kubernetes")


def merge_export(text: str, keys: Keys, user: str, *, local: bool, switch: bool) -> str:
    """Merge the exported credentials; return the context's name and file."""
    from protokube.cli.shared.contexts import merge
    from protokube.local.base.paths import Paths
    from protokube.local.contexts.user_kubeconfig import access_from, owner_of
    from protokube.local.contexts.values import Mark

    paths = Paths.of(keys.cluster) if local else None
    owner = owner_of(str(paths.root) if paths else f"{keys.store.url}/{keys.cluster}")
    try:
        plan = merge(access_from(text, keys.cluster, Mark(owner=owner, user=user)), paths, switch=switch)
    except OSError as error:
        hint = "-o FILE writes a file of its own"
        raise Refused("cannot merge into your kubeconfig", saw=str(error), hint=hint, code="output") from error
    return f"{plan.context} in {plan.path}"


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


def write(path: Path, text: str, cluster: str, *, force: bool = False) -> None:
    """Write atomically, following symlinks. Refuse to overwrite a device, and without `force` other content."""
    from protokube.host.files import read_or_none, write_atomic

    try:
        place = path.resolve()
        if place.exists() and not place.is_file():
            raise Refused(f"{path} is not a file", hint="without -o it is written to standard output")
        before = read_or_none(place)
        if before and not force and clusters_in(before) != [cluster]:
            raise Refused(
                f"{path} exists, and is not a kubeconfig for {cluster} alone",
                hint="name another file with -o (KUBECONFIG takes several, separated by colons), or use --force",
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
