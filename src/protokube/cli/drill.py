"""`protokube drill`: break something on purpose, watch it heal, and judge."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from protokube.cli.shared.cluster_view import Duration, cluster_option
from protokube.cli.shared.options import output_option

if TYPE_CHECKING:
    from protokube.local.drill.ground import Ground
    from protokube.local.drill.values import Step, Verdict

DRILLS = ("kill-master", "lose-volume", "partition", "pause-master", "power-off")


@click.command()
@click.argument("name", type=click.Choice(DRILLS))
@cluster_option
@click.option(
    "--member",
    metavar="NAME",
    help="The etcd member whose host or volume is hit: a, main/a, etcd-a.  [default: the leader]",
)
@click.option("--timeout", type=Duration(), default="120s", show_default=True, help="How long healing may take.")
@output_option(default="text", choices=("text", "json"))
def drill(name: str, cluster: str | None, member: str | None, timeout: float, output: str) -> int:
    """Inject a fault, watch the cluster heal, and judge.

    \b
      kill-master   kill the host that holds a member; its volume goes to a successor
      lose-volume   delete the volume of a member; the others take a new one in
      partition     pull the cable of a host for a while; the others go on
      pause-master  freeze a host, declare it dead, and let it wake up beside its successor
      power-off     kill every host at once; all of them come back with other names and addresses

    Numbered keys are written during the drill, and every acknowledged write must be there afterwards. Exit code 0: all
    promises were kept; 4: one was broken; 3: timeout. If it is interrupted, it undoes what it did to a host.

    \b
      protokube drill kill-master --member b
    """
    from protokube.cli.render.drill import outcome, render_verdict, verdict_tree
    from protokube.cli.shared.cluster_view import find_cluster
    from protokube.cli.shared.screen import show_painted
    from protokube.local.drill.ground import LocalGround

    ground = LocalGround(find_cluster(cluster))
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
