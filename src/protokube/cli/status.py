"""`protokube status`: show the state of a cluster, on this machine or from its state store."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from protokube.cli.shared.cluster_view import EVERY, STORE_EVERY, FailedLooks, cluster_option, seen_option
from protokube.cli.shared.durations import Duration
from protokube.cli.shared.options import output_option
from protokube.errors import ExitCode

if TYPE_CHECKING:
    from protokube.cli.shared.screen import Screen
    from protokube.view.cluster import ClusterView

PATIENCE = 5.0
"""Seconds for which the same need for a person must last before `--wait` gives up; others pass by themselves."""


@click.command()
@cluster_option
@seen_option
@click.option("--wait", is_flag=True, help="Wait until it is ready, a person is needed, or --timeout is over.")
@click.option("--timeout", type=Duration(), default="120s", show_default=True, help="Longest time that --wait waits.")
@output_option(default="text", choices=("text", "json", "yaml"))
def status(cluster: str | None, store_url: str | None, wait: bool, timeout: float, output: str) -> int:
    """Show the state of a cluster and what it waits for.

    Shows hosts, disks, etcd members, DNS names, and the last report of every agent. Needs no Kubernetes API. Exit
    code 0: ready; 3: not ready yet, no action needed; 4: a person is needed, even if the cluster serves; 2: bad input;
    70: a bug in protokube. docs/exit-codes.md has the whole table.

    With --store, it shows what the masters last published there: a change shows after about a minute, and each report
    shows its age. That needs no root, and nothing but the store.

    --wait ends with 4 once a person has been needed for five seconds; what an agent resolves sooner does not end it.
    With --store, the need has to be in two reports that the agent published one after the other.

    \b
      protokube status
      protokube status --wait --timeout 2m
      protokube status -o json
      protokube status --store s3://bucket/clusters --cluster dev.example.com
    """
    from protokube.cli.render.status import outcome, render_status
    from protokube.cli.render.tree import view_tree
    from protokube.cli.shared.cluster_view import cluster_source, follow
    from protokube.cli.shared.screen import Screen, show_data, show_painted

    with cluster_source(cluster, store_url) as source:
        if not wait:
            seen = source.look()
        else:
            screen = Screen(sys.stdout if output == "text" else sys.stderr)
            every = EVERY if store_url is None else STORE_EVERY
            seen = stay(follow(source.look, timeout, every=every, tell=FailedLooks()), screen)
            if output == "text":
                return outcome(seen)
    if output == "text":
        show_painted(render_status(seen))
    else:
        show_data(view_tree(seen), output)
    return outcome(seen)


def stay(views: Iterable[ClusterView], screen: Screen) -> ClusterView:
    """Show changes until the cluster is ready, or a person has been needed for PATIENCE; return the last view."""
    from protokube.cli.render.status import outcome, render_changes, render_status
    from protokube.view.cluster import Standing

    before: ClusterView | None = None
    standing = Standing()
    for seen in views:
        if screen.redraws:
            screen.show(render_status(seen))
        else:
            screen.tell(render_changes(before, seen))
        before, needed = seen, standing.feed(seen)
        if outcome(seen) is ExitCode.OK or needed >= PATIENCE:
            break
    assert before is not None
    if screen.redraws:
        screen.show(render_status(before), last=True)
    return before
