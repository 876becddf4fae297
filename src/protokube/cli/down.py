"""`protokube down`: take the local cloud away, all of it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import click

from protokube.cli.shared.contexts import take_out_contexts
from protokube.cli.shared.offered import offer_clusters
from protokube.cli.shared.options import Choice
from protokube.cli.shared.progress import Progress
from protokube.errors import ProtokubeError, Refused, TryLater


@click.command("down")
@click.option(
    "--cluster",
    "name",
    metavar="NAME",
    shell_complete=offer_clusters,
    help="Name of the cluster.  [default: the only one]",
)
@click.option("--all", "everything", is_flag=True, help="Every local cluster on this machine.")
@click.option("-o", "--output", type=Choice(["text", "json"]), default="text", help="Output format.")
def down(name: str | None, everything: bool, output: str) -> None:
    """Remove a local cluster completely.

    No process, mount, loop device or namespace stays behind. Works also after a crash, when none of its processes run.
    The data of the cluster is deleted, and its context is taken out of the kubeconfig into which `up` merged it. With
    --all, a cluster that cannot be removed does not prevent the others from being removed.

    \b
      protokube down
      protokube down --cluster second
    """
    from protokube.cli.shared.root import need_root
    from protokube.local.base.paths import Paths
    from protokube.local.choose import clusters, one_cluster
    from protokube.local.cloud.cleanup import remove

    need_root()
    progress = Progress(quiet=output == "json")
    names = clusters() if everything else [one_cluster(name)]
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
    else:
        for each, removed in result.items():
            click.echo(f"{each}: {', '.join(removed) or 'nothing was there'}")
    if failed:
        raise together(failed)


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
