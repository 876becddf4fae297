"""`protokube drill`: break something on purpose, watch it heal, and judge."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from protokube.cli.shared.cluster_view import EVERY, STORE_EVERY, FailedLooks, cluster_option, seen_option
from protokube.cli.shared.durations import Duration
from protokube.cli.shared.offered import offer_members
from protokube.cli.shared.options import Choice, output_option
from protokube.errors import InvalidRequest, TryLater

if TYPE_CHECKING:
    from protokube.errors import ExitCode
    from protokube.local.drill.ground import Ground
    from protokube.local.drill.values import Step, Verdict
    from protokube.view.cluster import ClusterView
    from protokube.view.recovery import Recovery

DRILLS = ("kill-master", "lose-volume", "partition", "pause-master", "power-off")
WATCH = "watch"
"""The one that breaks nothing, and so works for every cluster that can be seen."""


@click.command()
@click.argument("name", type=Choice((*DRILLS, WATCH)))
@cluster_option
@seen_option
@click.option(
    "--member",
    metavar="NAME",
    shell_complete=offer_members,
    help="The etcd member whose host or volume is hit: a, main/a, etcd-a.  [default: the leader]",
)
@click.option("--timeout", type=Duration(), default="120s", show_default=True, help="How long healing may take.")
@output_option(default="text", choices=("text", "json"))
def drill(
    name: str, cluster: str | None, store_url: str | None, member: str | None, timeout: float, output: str
) -> int:
    """Inject a fault, watch the cluster heal, and judge.

    \b
      kill-master   kill the host that holds a member; its volume goes to a successor
      lose-volume   delete the volume of a member; the others take a new one in
      partition     pull the cable of a host for a while; the others go on
      pause-master  freeze a host, declare it dead, and let it wake up beside its successor
      power-off     kill every host at once; all of them come back with other names and addresses
      watch         break nothing: wait until a machine, a volume or a member is lost, and watch it heal

    `watch` is for a fault of your own, such as a machine that you switch off. It needs no rights but to look, so it
    works for any cluster, also with --store: what the masters publish there is up to a minute late. The other drills
    are for local clusters.

    Numbered keys are written during the other drills, and every acknowledged write must be there afterwards. Exit code
    0: all promises were kept; 4: one was broken; 3: timeout. If it is interrupted, it undoes what it did to a host.

    \b
      protokube drill kill-master --member b
      protokube drill watch --store s3://bucket/clusters --cluster dev.example.com --timeout 10m
    """
    if name == WATCH:
        if member is not None:
            raise InvalidRequest("--member is for drills that break something", hint="leave it out")
        return watch(cluster, store_url, timeout, output)
    if store_url is not None:
        raise InvalidRequest(f"{name} breaks something, and that needs a local cluster", hint="`drill watch --store`")
    from protokube.cli.render.drill import outcome, render_verdict, verdict_tree
    from protokube.cli.shared.cluster_view import find_running
    from protokube.cli.shared.screen import show_painted
    from protokube.local.drill.ground import LocalGround

    ground = LocalGround(find_running(cluster))
    try:
        verdict = carry_out(name, ground, member, timeout, quiet=output == "json")
    finally:
        ground.close()
    if output == "json":
        click.echo(json.dumps(verdict_tree(verdict), indent=2))
    else:
        show_painted(render_verdict(verdict))
    return outcome(verdict)


def carry_out(name: str, ground: Ground, member: str | None, timeout: float, *, quiet: bool) -> Verdict:
    """Run the drill; on SIGTERM, as from `timeout`, undo its faults as after Ctrl-C."""
    from protokube.local.drill.run_drill import run_drill
    from protokube.signals import ending_like_ctrl_c

    with ending_like_ctrl_c():
        return run_drill(name, ground, member, timeout, (lambda _: None) if quiet else show_step)


def show_step(step: Step) -> None:
    """Show a step on stderr. A closed pipe does not stop the drill: the verdict goes to stdout."""
    from protokube.cli.render.drill import step_line

    with suppress(BrokenPipeError):
        click.echo(step_line(step), err=True)


def watch(cluster: str | None, store_url: str | None, timeout: float, output: str) -> ExitCode:
    """Look until something was lost and everything is ready again, or until the time is up."""
    from protokube.cli.render.recovery import outcome, recovery_tree, render_recovery
    from protokube.cli.shared.cluster_view import cluster_source, find_running, follow
    from protokube.cli.shared.screen import show_painted
    from protokube.view.recovery import Recovery

    if store_url is None:
        find_running(cluster)
    every = EVERY if store_url is None else STORE_EVERY
    with cluster_source(cluster, store_url) as source:
        views = follow(source.look, timeout, every=every, tell=FailedLooks())
        recovery = Recovery(ready_at_first(next(views)))
        began, steps = recovery.before.at, []
        for view in views:
            steps += tell(recovery, view, began, quiet=output == "json")
            if recovery.recovered:
                break
    if output == "json":
        click.echo(json.dumps(recovery_tree(recovery, steps), indent=2))
    else:
        show_painted(render_recovery(recovery))
    return outcome(recovery)


def ready_at_first(view: ClusterView) -> ClusterView:
    if not view.ready:
        hint = "protokube status --wait"
        raise TryLater("a drill needs a ready cluster, and this one is not ready", saw=view.lacks[0], hint=hint)
    click.echo(f"{view.cluster} is ready: break something now", err=True)
    return view


def tell(recovery: Recovery, view: ClusterView, began: float, *, quiet: bool) -> list[Step]:
    """Show what this look changes; the times count from the first loss, as far as there was one."""
    from protokube.cli.render.status import render_changes
    from protokube.local.drill.values import Step

    before = recovery.now
    recovery.feed(view)
    at = view.at - (recovery.lost_at if recovery.lost_at is not None else began)
    steps = [Step(at, line) for line in render_changes(before, view)] if recovery.lost_at is not None else []
    for step in steps if not quiet else ():
        show_step(step)
    return steps
