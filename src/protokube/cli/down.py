"""`protokube down`: take the local cloud away, all of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

import click

from protokube.cli.shared.contexts import take_out_contexts
from protokube.cli.shared.offered import offer_clusters
from protokube.cli.shared.options import Choice
from protokube.cli.shared.progress import Progress
from protokube.errors import InvalidRequest, ProtokubeError, Refused, TryLater


@click.command("down")
@click.option(
    "--cluster",
    "name",
    metavar="NAME",
    shell_complete=offer_clusters,
    help="Name of the cluster.  [default: the only one]",
)
@click.option("--all", "everything", is_flag=True, help="Every local cluster on this machine; lists them and asks.")
@click.option("--yes", is_flag=True, help="With --all: do not ask.")
@click.option("-o", "--output", type=Choice(["text", "json"]), default="text", help="Output format.")
def down(name: str | None, everything: bool, yes: bool, output: str) -> None:
    """Remove a local cluster completely.

    No process, mount, loop device or namespace stays behind. Works also after a crash, when none of its processes run.
    The data of the cluster is deleted, and its context is taken out of the kubeconfig into which `up` merged it. With
    --all, it lists all clusters of this machine and asks first; where nobody can be asked, it wants --yes. A cluster
    that cannot be removed does not prevent the others from being removed.

    \b
      protokube down
      protokube down --cluster second
      protokube down --all --yes
    """
    from protokube.cli.shared.root import need_root
    from protokube.local.base.paths import Paths
    from protokube.local.choose import clusters, one_cluster
    from protokube.local.cloud.cleanup import remove

    if everything and name is not None:
        raise InvalidRequest("--all takes every cluster, --cluster one of them", hint="give one of the two options")
    need_root()
    progress = Progress(quiet=output == "json")
    names = clusters() if everything else [one_cluster(name)]
    if everything and names and not yes:
        confirm(names)
    result: dict[str, list[str]] = {}
    failed: dict[str, Exception] = {}
    for each in names:
        try:
            with progress.step(f"{each}: removed"):
                result[each] = take_out_contexts(Paths.of(each)) + remove(Paths.of(each))
        except (ProtokubeError, OSError) as why:  # still remove the others
            failed[each] = why
    if output == "json":
        click.echo(json.dumps(result, indent=2))
    elif not names:
        click.echo("there is no local cluster on this machine")
    else:
        for each, removed in result.items():
            click.echo(f"{each}: {', '.join(removed) or 'nothing was there'}")
    if failed:
        raise together(failed)


def confirm(names: Sequence[str]) -> None:
    """List what goes, and ask. InvalidRequest where nobody can be asked; Abort for any answer but yes."""
    from protokube.cli.render.table import several

    what = f"{several(len(names), 'cluster')} with all data: {', '.join(names)}"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidRequest(f"--all would remove {what}", want="--yes, because nobody can be asked here")
    click.echo(f"this removes {what}", err=True)
    click.confirm("Remove them?", abort=True, err=True)


def together(failed: Mapping[str, Exception]) -> Exception:
    """Combine several errors into one; TryLater only if a retry may help with each."""
    if len(failed) == 1:
        return next(iter(failed.values()))
    kind = TryLater if all(isinstance(each, TryLater) for each in failed.values()) else Refused
    saw = "; ".join(f"{name}: {_sentence(why)}" for name, why in failed.items())
    hint = "`protokube down --cluster NAME` shows more about one of them"
    return kind(f"{len(failed)} clusters are still there: {', '.join(failed)}", saw=saw, hint=hint)


def _sentence(why: Exception) -> str:
    return ": ".join(part for part in (why.message, why.saw) if part) if isinstance(why, ProtokubeError) else str(why)
