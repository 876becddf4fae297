"""`protokube status`: how far a local cluster has come up."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from protokube.cli.shared.cluster_view import Duration, cluster_option
from protokube.cli.shared.options import output_option
from protokube.errors import ExitCode

if TYPE_CHECKING:
    from protokube.cli.shared.screen import Screen
    from protokube.local.view.cluster import ClusterView

PATIENCE = 5.0
"""Seconds after which a need for a person, the same all the time, counts as one that does not pass by itself."""


@click.command()
@cluster_option
@click.option("--wait", is_flag=True, help="Stay until it is ready, a person is needed, or the time is up.")
@click.option("--timeout", type=Duration(), default="120s", show_default=True, help="How long --wait stays.")
@output_option(default="text", choices=("text", "json", "yaml"))
def status(cluster: str | None, wait: bool, timeout: float, output: str) -> int:
    """How far a local cluster has come up, and what it waits for.

    Hosts, disks, etcd members, names, and what every agent says of itself; no Kubernetes API is needed for it. Exit
    code 0: ready; 3: not ready yet, and nobody has to act; 4: a person is needed, also while the cluster serves; 2: bad
    input; 70: a bug of ours. docs/exit-codes.md has the whole table.

    --wait ends with 4 once a person has been needed for five seconds: what passes within a round does not end it.

    \b
      protokube status
      protokube status --wait --timeout 2m
      protokube status -o json
    """
    from protokube.cli.render.status import outcome, render_status
    from protokube.cli.render.tree import view_tree
    from protokube.cli.shared.cluster_view import find_cluster, follow
    from protokube.cli.shared.screen import Screen, show_data, show_painted
    from protokube.local.view.look import Looker

    paths = find_cluster(cluster)
    with Looker(paths) as looker:
        if not wait:
            seen = looker.look()
        else:
            screen = Screen(sys.stdout if output == "text" else sys.stderr)
            seen = stay(follow(looker.look, timeout), screen)
            if output == "text":
                return outcome(seen)
    if output == "text":
        show_painted(render_status(seen))
    else:
        show_data(view_tree(seen), output)
    return outcome(seen)


def stay(views: Iterable[ClusterView], screen: Screen) -> ClusterView:
    """Show what changes until it is ready, or until a person has been needed for a while; the last view."""
    from protokube.cli.render.status import outcome, render_changes, render_status
    from protokube.local.view.cluster import Standing

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
