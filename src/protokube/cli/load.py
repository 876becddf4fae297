"""`protokube load`: load images into a local cluster, without a registry."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from protokube.cli.shared.cluster_view import cluster_option
from protokube.cli.shared.durations import Duration
from protokube.cli.shared.options import output_option
from protokube.errors import ProtokubeError, Refused, TryLater

if TYPE_CHECKING:
    from protokube.local.loading.delivery import Outcome
    from protokube.local.loading.load import Change, Found


def files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete file names."""
    return [CompletionItem(incomplete, type="file")]


@click.group()
def load() -> None:
    """Load images into a local cluster, without a registry.

    \b
      protokube load image web.tar
      protokube load image web:1 db:2
    """


@load.command()
@click.argument("images", metavar="FILE|NAME...", nargs=-1, required=True, shell_complete=files)
@cluster_option
@click.option("--timeout", type=Duration(), default="5m", show_default=True, help="How long the hosts may take.")
@output_option(default="text", choices=("text", "json"))
def image(images: tuple[str, ...], cluster: str | None, timeout: float, output: str) -> None:
    """Bring images to every host of a local cluster, also to hosts that come later.

    FILE is an archive as `docker save`, `podman save` or `ctr images export` write it, also compressed by gzip. NAME is
    an image that docker, podman, nerdctl or ctr on this machine has. For clusters of `protokube up --kubelet`: pods
    find the image by the name that is printed, with `imagePullPolicy: Never` or `IfNotPresent`. Loading a name again
    with other content replaces the image; running pods keep the old one. If any image has a problem, all problems are
    reported and nothing is loaded.

    \b
      protokube load image web.tar
      protokube load image web:1 db:2 --cluster second
      docker build --tag web:2 . && protokube load image web:2
    """
    from protokube.cli.render.table import several, size
    from protokube.cli.shared.cluster_view import find_running
    from protokube.cli.shared.progress import Progress
    from protokube.cli.shared.root import need_root
    from protokube.images.contents import ImageProblem
    from protokube.local.bringup import CACHE
    from protokube.local.loading import image_store
    from protokube.local.loading.load import changes, deliver, found, need_kubelet, need_room
    from protokube.local.node.kubehost import ctr
    from protokube.providers.clients.local import LocalClient

    need_root()
    paths = find_running(cluster)
    admin = LocalClient(paths.admin_socket, patience=30)
    hosts = need_kubelet(paths, admin)
    progress = Progress(quiet=output == "json")
    progress.say("another load, if there is one")
    try:
        with image_store.locked(paths.images, timeout):
            with progress.step("read and judged") as step, found(images, paths.images) as good:
                step.text = f"{several(len(good), 'archive')} read: {size(sum(each.size for each in good))}"
                need_room(paths, good, hosts)
                before = image_store.read_index(paths.images)
                image_store.keep(paths.images, [(each.file, each.kept) for each in good])
            with progress.step("hosts") as step:
                outcomes = deliver(paths, admin, ctr(CACHE), [each.kept for each in good], timeout)
                step.text = (
                    f"brought to {several(sum(each.state in ('imported', 'unchanged') for each in outcomes), 'host')}"
                )
    except ImageProblem as why:
        raise Refused(str(why)) from why
    except FileNotFoundError as why:
        raise Refused(f"{why.filename} disappeared meanwhile", hint="is somebody taking the cluster down?") from why
    result = tree(paths.cluster, good, changes(before, good), outcomes)
    click.echo(json.dumps(result, indent=2) if output == "json" else "\n".join(lines(result)))
    if error := failure(outcomes):
        raise error


def tree(
    cluster: str, good: Sequence[Found], changed: Mapping[str, Change], outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    """The result as data. Pure."""
    images = [
        {"name": name, "from": each.argument, "exportedBy": each.tool or None, "change": changed[name],
         "archive": f"sha256:{each.kept.sha256}", "bytes": each.size}
        for each in good
        for name in each.kept.names
    ]  # fmt: skip
    hosts = [{"host": each.host, "state": each.state, **({"why": each.why} if each.why else {})} for each in outcomes]
    return {"cluster": cluster, "images": images, "hosts": hosts}


def lines(result: Mapping[str, Any]) -> list[str]:
    """The result as text. Pure."""
    from protokube.cli.render.table import table

    words = {
        "imported": "imported",
        "unchanged": "has them already",
        "gone": "died; its replacement imports them",
        "refused": "its containerd refuses them",
        "failed": "failed",
    }
    rows = [(each["name"], each["change"], each["from"]) for each in result["images"]]
    hosts = [(each["host"], words[each["state"]]) for each in result["hosts"]]
    return [*table(("IMAGE", "STATE", "FROM"), rows), "", *table(("HOST", "STATE"), hosts)]


def failure(outcomes: Sequence[Outcome]) -> ProtokubeError | None:
    """The error if a host does not have the images. Pure."""
    failed = [each for each in outcomes if each.state in ("refused", "failed")]
    if not failed:
        return None
    message = f"not on every host: {', '.join(each.host for each in failed)}"
    saw = "; ".join(f"{each.host}: {each.why}" for each in failed)
    if any(each.state == "refused" for each in failed):
        return Refused(message, saw=saw, hint="load the same names from an archive that containerd takes")
    hint = "the images are stored, and new hosts import them; run the same command again to retry these hosts"
    return TryLater(message, saw=saw, hint=hint)
