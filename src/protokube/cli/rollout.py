"""`protokube rollout`: the revisions of a cluster, how far the newest one has come, and the way back."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from protokube.cli.shared.cluster_view import (
    Duration,
    cluster_option,
    cluster_source,
    find_cluster,
    opened_store,
    seen_option,
    stored_cluster,
)
from protokube.cli.shared.options import output_option
from protokube.errors import ExitCode, InvalidRequest, Refused, TryLater

if TYPE_CHECKING:
    from protokube.launch.machine import MasterConfig
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
    from protokube.cli.shared.completing import complete_revision
    from protokube.cli.shared.progress import Progress
    from protokube.cli.shared.rollout import author, confirm, follow_local, groups_of, still_old
    from protokube.launch.plan import plan
    from protokube.launch.revisions import create_revision, numbers, put_in_force, read_revision
    from protokube.launch.versions import stages
    from protokube.store.configuration import put_config

    paths = find_cluster(cluster)
    store = _store(paths)
    record = _record(store, paths.cluster)
    target = earlier(store, paths.cluster, record, number)
    present = read_revision(store, paths.cluster, record.wanted)
    was, now = complete_revision(present), complete_revision(target)
    base = read_revision(store, paths.cluster, record.at_boot())
    still = still_old(paths, record, base, present.master, target.master)
    change = plan(was, now, present.master, target.master, groups_of(target.master), still)
    if change.refused:
        raise Refused(f"revision {target.number} cannot be returned to", saw="; ".join(map(str, change.refused)))
    width, following = shutil.get_terminal_size().columns, max(numbers(store, paths.cluster)) + 1
    click.echo("\n".join([*render_change(change, paths.cluster, record.wanted, following, width), ""]))
    if dry_run:
        return
    confirm(change, paths.cluster, yes=yes)
    put_config(store, now, [(target.source, target.spec)])
    progress = Progress()
    for stage in stages(base.master, target.master):
        made = create_revision(store, paths.cluster, partial(_again, target, stage, author()))
        put_in_force(store, paths.cluster, made, running=True)
        with progress.step(f"revision {made.number}, {made.note}") as step:
            follow_local(progress, paths, store, made, timeout)
            step.text = f"all masters run revision {made.number}, which is {made.note}"


def _again(target: Revision, stage: MasterConfig, by: str, number: int) -> Revision:
    """The revision for one stage of the way back; the last stage is as the target."""
    from protokube.launch.revisions import digest_of

    digest = digest_of(stage)
    note = f"as revision {target.number}" if digest == target.digest else f"on the way to {target.number}"
    return replace(
        target, number=number, author=by, at=time.time(), master=replace(stage, revision=number), digest=digest,
        note=note, kubernetes=stage.kubernetes or target.kubernetes,
        etcd=stage.etcd[0].version or target.etcd, snapshots={},
    )  # fmt: skip


def earlier(store: Store, cluster: str, record: Rollout, number: int | None) -> Revision:
    """The revision to return to: by default the last one with another configuration that all masters ran."""
    from protokube.launch.revisions import numbers, read_revision

    if number is None and record.before and record.before != record.wanted:
        number = record.before
    if number is None:
        raise InvalidRequest("there is no earlier revision", hint="`protokube rollout history` lists them")
    if number not in (known := numbers(store, cluster)):
        raise InvalidRequest(f"there is no revision {number}", want=", ".join(map(str, known)))
    return read_revision(store, cluster, number)
