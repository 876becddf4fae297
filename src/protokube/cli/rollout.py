"""`protokube rollout`: the revisions of a cluster, how far the newest one has come, and the way back."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from protokube.cli.shared.cluster_view import (
    cluster_option,
    cluster_source,
    find_cluster,
    find_running,
    opened_store,
    seen_option,
    stored_cluster,
)
from protokube.cli.shared.durations import Duration
from protokube.cli.shared.options import output_option
from protokube.errors import ExitCode, InvalidSpec, NotFound, Refused, TryLater

if TYPE_CHECKING:
    from protokube.config.complete import Config
    from protokube.launch.revisions import Revision
    from protokube.launch.rollout import Rollout
    from protokube.local.base.paths import Paths
    from protokube.store import Store
    from protokube.view.source import Source


@click.group()
def rollout() -> None:
    """Show revisions and their rollout; return to an earlier one.

    Each configuration that `up` puts in force is a numbered revision in the state store. Masters take it one after the
    other where something has to restart.

    \b
      protokube rollout status
      protokube rollout status --store s3://bucket/clusters
      protokube rollout history
      protokube rollout undo
      protokube rollout undo --to 2
    """


def _store(paths: Paths) -> Store:
    from protokube.store.open import open_store

    return open_store(f"file://{paths.store}")


@contextmanager
def _opened(cluster: str | None, store_url: str | None) -> Iterator[tuple[Store, str]]:
    """The store and the name of the cluster in it."""
    if store_url is None:
        paths = find_cluster(cluster)
        yield _store(paths), paths.cluster
        return
    with opened_store(store_url) as store:
        yield store, stored_cluster(store, cluster)


def _record(store: Store, cluster: str) -> Rollout:
    from protokube.launch.revisions import read_rollout

    record = read_rollout(store, cluster)
    if record is None:
        raise Refused(f"{cluster} has no revisions yet", hint="`protokube up` puts the first one in force")
    return record


def _present(source: Source) -> dict[str, int]:
    """The revision that each master runs; nothing while no report can be had: the record is what counts."""
    try:
        return {each.host: each.revision or 0 for each in source.look().agents}
    except TryLater as why:
        click.echo(f"the revisions of the masters are not known: {why.message}", err=True)
        return {}


@rollout.command()
@cluster_option
@seen_option
@output_option(default="text", choices=("text", "json", "yaml"))
def status(cluster: str | None, store_url: str | None, output: str) -> int:
    """Show how far the newest revision has come, with its timeline.

    Exit code 0: all masters run it; 3: it is being rolled out; 4: it stopped.
    """
    from protokube.cli.render.rollout import render_rollout
    from protokube.cli.render.tree import rollout_tree
    from protokube.cli.shared.screen import show_data, show_painted
    from protokube.launch.rollout import State

    with _opened(cluster, store_url) as (store, name):
        record = _record(store, name)
    with cluster_source(name, store_url) as source:
        present = _present(source)
    if output == "text":
        show_painted(render_rollout(name, record, present, time.time()))
    else:
        show_data({**rollout_tree(record), "hosts": present}, output)
    codes = {State.DONE: ExitCode.OK, State.ROLLING: ExitCode.TRY_LATER, State.STOPPED: ExitCode.REFUSED}
    return codes[record.state]


@rollout.command()
@cluster_option
@seen_option
@output_option(default="text", choices=("text", "json", "yaml"))
def history(cluster: str | None, store_url: str | None, output: str) -> None:
    """List all revisions; the one in force is marked with *."""
    from protokube.cli.render.rollout import render_history, revision_tree
    from protokube.cli.shared.screen import show_data, show_painted
    from protokube.launch.revisions import by_number

    with _opened(cluster, store_url) as (store, name):
        record, found = _record(store, name), by_number(store, name)
    if output == "text":
        show_painted(render_history(record, found, time.time()))
    else:
        show_data([revision_tree(each, wanted=number == record.wanted) for number, each in found.items()], output)


@rollout.command()
@cluster_option
@click.option("--to", "number", type=click.IntRange(1), help="The revision.  [default: the last one before this]")
@click.option("--dry-run", is_flag=True, help="Show what would change, and stop there.")
@click.option("--yes", is_flag=True, help="Restart the only master, though nothing answers meanwhile.")
@click.option("--timeout", type=Duration(), default="300s", show_default=True, help="Longest wait for each step.")
def undo(cluster: str | None, number: int | None, dry_run: bool, yes: bool, timeout: float) -> None:
    """Return all masters to an earlier revision.

    Its configuration becomes a new revision, which is rolled out as any other. What differs is shown first.
    """
    from protokube.cli.render.change import render_change
    from protokube.cli.shared.completing import known_configuration, matching_text
    from protokube.cli.shared.progress import Progress
    from protokube.cli.shared.rollout import confirm, groups_of, still_old
    from protokube.cli.shared.templates import without_kubelets
    from protokube.cli.shared.upgrade import Planned, Target, deliver
    from protokube.launch.cloud import cloud_config
    from protokube.launch.plan import plan
    from protokube.launch.revisions import numbers, read_revision, with_versions
    from protokube.providers import catalog
    from protokube.providers.clients.local import LocalClient

    paths = find_cluster(cluster)
    store = _store(paths)
    record = _record(store, paths.cluster)
    target = earlier(store, paths.cluster, record, number)
    present, base = (read_revision(store, paths.cluster, each) for each in (record.wanted, record.at_boot()))
    wanted, spec = with_versions(target), matching_text(target.spec, target.etcd, target.kubernetes)
    now = completed_again(replace(target, spec=spec))
    still = still_old(paths, store, record, with_versions(present), wanted)
    change = plan(
        known_configuration(present) or now, now, with_versions(base), wanted, groups_of(wanted), still,
        with_versions(present),
    )  # fmt: skip
    if change.refused:
        raise Refused(
            f"revision {target.number} cannot be returned to",
            saw="; ".join(f"{each.path}: {each.message}".removeprefix(": ") for each in change.refused),
            hint="; ".join(dict.fromkeys(each.hint for each in change.refused if each.hint)),
        )
    need_hosts_made(store, target, record)
    width, following = shutil.get_terminal_size().columns, max(numbers(store, paths.cluster)) + 1
    click.echo("\n".join([*render_change(change, paths.cluster, record.wanted, following, width), ""]))
    if dry_run:
        return
    confirm(change, paths.cluster, yes=yes)
    find_running(paths.cluster)
    admin = LocalClient(paths.admin_socket, patience=catalog.OPERATOR_PATIENCE)
    cloud = catalog.operator({"kind": cloud_config(now).kind, "socket": str(paths.admin_socket)})
    planned = Planned(record=record, revision=present, base=base)
    texts = [(target.source or f"revision {target.number}", spec)]
    goal = Target(
        config=now, wanted=wanted, texts=texts, source=target.source, note=f"as revision {target.number}",
        make_hosts=without_kubelets(cloud.groups),
    )  # fmt: skip
    deliver(Progress(), paths, store, admin, planned, goal, timeout)


def need_hosts_made(store: Store, target: Revision, record: Rollout) -> None:
    """Refused, before anything is written, if it needs hosts with kubelets, which only `up` can have made."""
    from protokube.cli.shared.upgrade import others_since

    if target.master.kubelet_kubeconfig and others_since(store, target.master, record.at_boot()):
        raise Refused(
            f"revision {target.number} cannot be returned to: it needs hosts with kubelets, which `undo` cannot make",
            hint="`protokube up --kubelet` adds them",
        )


def completed_again(target: Revision) -> Config:
    from protokube.cli.shared.completing import complete_revision

    try:
        return complete_revision(target)
    except InvalidSpec as why:  # the old text with another etcd, for one stage of an upgrade
        raise Refused(
            f"revision {target.number} cannot be returned to: its spec does not go with etcd {target.etcd}",
            saw="; ".join(each.message for each in why.problems),
            hint=f"correct the spec for etcd {target.etcd}, and run `up` with it",
        ) from why


def earlier(store: Store, cluster: str, record: Rollout, number: int | None) -> Revision:
    """The revision to return to: by default the last one with another configuration that all masters ran."""
    from protokube.launch.revisions import numbers, read_revision

    if number is None and record.before and record.before != record.wanted:
        number = record.before
    if number is None:
        raise NotFound("there is no earlier revision", hint="`protokube rollout history` lists them")
    if number not in (known := numbers(store, cluster)):
        raise NotFound(f"there is no revision {number}", want=", ".join(map(str, known)))
    return read_revision(store, cluster, number)
