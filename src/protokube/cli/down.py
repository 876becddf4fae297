"""`protokube down`: take the local cloud away, all of it."""

from __future__ import annotations

import json

import click

from protokube.cli.progress import Progress
from protokube.errors import Refused


@click.command("down")
@click.option("--cluster", "name", default=None, help="Which; needed only if there are several.")
@click.option("--all", "everything", is_flag=True, help="Every local cluster on this machine.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to tell the result.")
def down(name: str | None, everything: bool, output: str) -> None:
    """Take the local cloud away, all of it.

    No process, mount, loop device or namespace stays behind. Works also after a crash, when nothing of it runs any
    more. The data of the cluster is gone afterwards.

    \b
      protokube down
      protokube down --cluster second
    """
    from protokube.cli.up import need_root
    from protokube.local.choose import clusters, one_cluster
    from protokube.local.cleanup import leftovers, remove
    from protokube.local.paths import Paths

    need_root()
    progress = Progress(quiet=output == "json")
    names = clusters() if everything else [one_cluster(name)]
    told = {}
    for each in names:
        paths = Paths.of(each)
        with progress.step(f"{each}: removed"):
            told[each] = remove(paths)
            if left := leftovers(paths):
                raise Refused(f"something of {each} is still there", saw="; ".join(left), hint="`protokube down` again")
    if output == "json":
        click.echo(json.dumps(told, indent=2))
    else:
        for each, removed in told.items():
            click.echo(f"{each}: {', '.join(removed) or 'nothing was there'}")
