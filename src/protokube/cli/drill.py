"""`protokube drill`: break something on purpose, watch it heal, and judge."""

from __future__ import annotations

import json

import click

from protokube.cli.cluster_view import Duration, cluster_option
from protokube.cli.options import output_option

DRILLS = ("kill-master", "lose-volume", "partition", "pause-master", "power-off")


@click.command()
@click.argument("name", type=click.Choice(DRILLS))
@cluster_option
@click.option("--member", metavar="NAME", help="Whose host, or whose volume: a, main/a, etcd-a. Unsaid: the leader's.")
@click.option("--timeout", type=Duration(), default="120s", show_default=True, help="How long healing may take.")
@output_option(default="text", choices=("text", "json"))
def drill(name: str, cluster: str | None, member: str | None, timeout: float, output: str) -> int:
    """Break something on purpose, watch it heal, and judge.

    \b
      kill-master   kill the host that holds a member; its volume goes to a successor
      lose-volume   delete the volume of a member; the others take a new one in
      partition     pull the cable of a host for a while; the others go on
      pause-master  freeze a host, declare it dead, and let it wake up beside its successor
      power-off     kill every host at once; all of them come back with other names and addresses

    Numbered keys are written all the while, and every acknowledged one has to be there afterwards. Exit code 0: every
    promise was kept; 4: one was broken; 3: the time was up.

    \b
      protokube drill kill-master --member b
    """
    from protokube.cli.cluster_view import find_cluster
    from protokube.cli.render_drill import outcome, render_verdict, step_line, verdict_tree
    from protokube.cli.render_screen import show_painted
    from protokube.local.drill_ground import LocalGround
    from protokube.local.drills import run_drill

    ground = LocalGround(find_cluster(cluster))
    try:
        quiet = output == "json"
        verdict = run_drill(
            name, ground, member, timeout, lambda step: None if quiet else click.echo(step_line(step), err=True)
        )
    finally:
        ground.close()
    if output == "json":
        click.echo(json.dumps(verdict_tree(verdict), indent=2))
    else:
        show_painted(render_verdict(verdict))
    return outcome(verdict)
